"""The first app one writes by hand: made-up orders, sales per item and minute, to the console."""

from __future__ import annotations

from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.appName("first").getOrCreate()
ticks = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
items = F.array(*map(F.lit, ("apple", "bread", "cheese", "honey", "tea")))
orders = ticks.select(
    F.col("timestamp").alias("at"),
    items[(F.rand() * 5).cast("int")].alias("item"),
    F.round(F.rand() * 2000).cast("bigint").alias("cents"),
)
sales = (
    orders.withWatermark("at", "1 minute")
    .groupBy("item", F.window("at", "1 minute"))
    .agg(F.count("*").alias("orders"), F.sum("cents").alias("cents"))
)
writer = sales.writeStream.outputMode("update").format("console").option("truncate", value=False)
writer.start().awaitTermination()
