"""A home kept small and whole: tables maintained, rows erased, copies made and restored."""
