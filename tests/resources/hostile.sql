-- Statements for Spark that would do more than read the tables t and nest; one a line, \n within.
SELECT TRANSFORM(k) USING 'touch {file}' AS (x) FROM t
SELECT TRANSFORM(k) USING 'cat' FROM t
SELECT MAP(k) USING 'cat' FROM t
SELECT REDUCE(k) USING 'cat' FROM t
FROM t MAP k USING 'cat' AS x
FROM t REDUCE k USING 'cat' AS x
SELECT * FROM (SELECT TRANSFORM(k) USING 'sh -c id' AS (x) FROM t)
WITH x AS (SELECT TRANSFORM(k) USING 'id' FROM t) SELECT * FROM x
SELECT TRANSFORM(k) ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' USING 'id' FROM t
SELECT reflect('java.lang.System', 'getenv', 'HOME')
SELECT java_method('java.lang.System', 'getProperty', 'user.home')
SELECT try_reflect('java.lang.System', 'getenv', 'HOME')
SELECT REFLECT ('java.lang.Runtime', 'getRuntime')
SELECT `reflect`('java.lang.System', 'getenv', 'HOME')
SELECT system.builtin.reflect('java.lang.System', 'getenv', 'HOME')
SELECT builtin.reflect('java.lang.System', 'getenv', 'HOME')
SELECT upper(reflect('java.lang.System', 'getenv', 'HOME')) FROM t
SELECT * FROM t WHERE k = reflect('java.lang.System', 'getenv', 'HOME')
SELECT * FROM t ORDER BY reflect('java.lang.System', 'getenv', 'HOME')
SELECT sum(v) OVER (PARTITION BY reflect('java.lang.System', 'getenv', 'HOME')) FROM t
SELECT transform(xs, x -> reflect('java.lang.System', 'getenv', 'HOME')) FROM nest
SELECT k FROM t GROUP BY k HAVING max(reflect('java.lang.System', 'getenv', 'HOME')) > ''
VALUES (reflect('java.lang.System', 'getenv', 'HOME'))
SELECT * FROM text.`/etc/passwd`
SELECT * FROM csv.`/etc/passwd`
SELECT * FROM json.`/etc/passwd`
SELECT * FROM parquet.`{tables}/t`
SELECT * FROM orc.`/etc/passwd`
SELECT * FROM avro.`/etc/passwd`
SELECT * FROM xml.`/etc/passwd`
SELECT * FROM binaryFile.`/etc/passwd`
SELECT * FROM delta.`{tables}/t`
SELECT * FROM `text`.`/etc/passwd`
SELECT * FROM t JOIN text.`/etc/passwd` ON true
SELECT (SELECT max(value) FROM text.`/etc/passwd`) AS x FROM t
SELECT * FROM t WHERE k IN (SELECT value FROM text.`/etc/passwd`)
WITH x AS (SELECT * FROM text.`/etc/passwd`) SELECT * FROM x
SELECT * FROM t UNION ALL SELECT value FROM text.`/etc/passwd`
SELECT * FROM spark_catalog.default.t
SELECT * FROM default.t
SELECT * FROM global_temp.t
SELECT * FROM information_schema.tables
SELECT * FROM `/etc/passwd`
SELECT * FROM IDENTIFIER('text.`/etc/passwd`')
SELECT IDENTIFIER('reflect')('java.lang.System', 'getenv', 'HOME')
SELECT * FROM read_files('/etc/passwd')
SELECT * FROM table_changes('t', 0)
SELECT * FROM python_worker_logs()
SELECT * FROM sql_keywords()
SELECT * FROM TABLE(reflect('a', 'b'))
SELECT * FROM t, LATERAL read_files('/etc/passwd')
SELECT * FROM t LATERAL VIEW reflect('java.lang.System', 'getenv', 'HOME') x AS y
SELECT '${env:HOME}' AS x
SELECT ${env:HOME}
SELECT '${system:user.home}' AS x
SELECT '${spark:spark.master}', '${hiveconf:x}', '${spark.app.name}'
SELECT :parameter
SELECT ? FROM t
SELECT input_file_name() FROM t
SELECT current_user
SELECT current_user(), session_user(), current_catalog()
SELECT from_protobuf(X'00', 'M', '/etc/passwd')
SELECT xpath('<a/>', 'a')
SELECT from_xml('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', 'a STRING')
SELECT _metadata.file_path, nosuch(1) FROM t
SELECT /*+ BROADCAST(t) */ * FROM t
SELECT * FROM t WITH (path = '/etc/passwd')
SELECT * INTO x FROM t
SELECT 1; SET spark.sql.variable.substitute = true
SET spark.sql.runSQLOnFiles = true
RESET
ADD JAR '/tmp/x.jar'
ADD FILE '/etc/passwd'
LIST JARS
CREATE TABLE x AS SELECT 1
CREATE TEMPORARY VIEW x USING text OPTIONS (path '/etc/passwd')
CREATE TEMPORARY FUNCTION f AS 'x.y.Z' USING JAR '/tmp/x.jar'
CREATE FUNCTION f() RETURNS INT LANGUAGE PYTHON AS 'return 1'
INSERT INTO t SELECT * FROM t
INSERT OVERWRITE DIRECTORY '/tmp/x' USING csv SELECT 1
INSERT OVERWRITE LOCAL DIRECTORY '/tmp/x' USING csv SELECT 1
FROM t INSERT INTO t SELECT *
WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x
LOAD DATA LOCAL INPATH '/etc/passwd' INTO TABLE t
COPY INTO t FROM '/etc/passwd'
DROP TABLE t
ALTER TABLE t SET LOCATION '/etc'
TRUNCATE TABLE t
MERGE INTO t USING nest ON true WHEN MATCHED THEN DELETE
UPDATE t SET k = 1
DELETE FROM t
VACUUM t
EXECUTE IMMEDIATE 'SELECT 1'
DECLARE x = 1
CALL system.x()
BEGIN SELECT 1; END
EXPLAIN SELECT * FROM text.`/etc/passwd`
CACHE TABLE x AS SELECT * FROM text.`/etc/passwd`
REFRESH TABLE t
ANALYZE TABLE t COMPUTE STATISTICS
DESCRIBE QUERY SELECT * FROM text.`/etc/passwd`
SHOW TABLES IN default
USE x
TABLE text.`/etc/passwd`
FROM text.`/etc/passwd` SELECT *
FROM text.`/etc/passwd` |> SELECT value
