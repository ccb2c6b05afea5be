from pyspark.sql import DataFrame as DataFrame, SparkSession as SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter as DataStreamWriter
