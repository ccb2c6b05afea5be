from pyspark.sql import DataFrame as DataFrame, SparkSession as SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter as DataStreamWriter
from pyspark.sql.types import StructType as StructType
