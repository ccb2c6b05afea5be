"""Programs written for pyspark.streaming, which run on it and on `millstream.dstream` unchanged.

A program is a plain function of three arguments:

    def word_count(ssc, streams, collect):
        [lines] = streams
        words = lines.flatMap(str.split)
        collect("counts", words.map(lambda word: (word, 1)).reduceByKey(add))

- `ssc` is the StreamingContext, made but not started.
- `streams` are the input DStreams, one for each queue of the program: `ssc.queueStream(batches)`
  of plain lists, one of which is taken for each batch. When a queue is empty, so are its batches.
- `collect(name, dstream)` registers an output: the elements of every batch are recorded under the
  batch's number. The first batch has number 1, and its time is `START` plus one interval.
  `collect` is a `tests.dstream.program.Collect`; its docstrings say what else a program may use.

`tests.dstream.program.Program` is such a function with its queues, the number of batches and the
interval. An engine is a function of one form, in `spark_engine.py` for pyspark.streaming and in
`ours.py` for `millstream.dstream`:

    run_ours(program, batches, interval=1.0, *, count=None, folder=None, **more) -> Outputs

`program` is the plain function. `batches[i][n]` is the list of elements of stream `i` in batch
`n + 1`. `count` batches are run: by default as many as the longest queue has. `folder` is an empty
folder for the run. An engine

1. makes `Collect(api, folder, interval)`, where `api` is its module, the context and its queues,
2. calls the program, which sets the checkpoint directory that pyspark needs for state and for
   windows with an inverse (an engine that needs one sooner sets it before), starts the context,
3. for each number from 1 to `count`: calls `collect.run_before(number)`, moves its virtual clock to
   `START + number * interval` and waits until that batch has been computed with all its outputs,
4. stops the context (the SparkContext goes on) and returns `collect.outputs`.

After a crash the program is called again with a new context and the same `collect`: a batch that
is computed again must give the same elements, which `Collect` checks.
"""
