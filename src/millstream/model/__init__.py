"""What an application is: frozen data, without Spark and without I/O."""
