-- literals and types
SELECT 1, 2147483648, 1.50, 1e3, 'x', true, NULL
SELECT 5L AS a, 1.5D AS b, 2.5BD AS c, 7S AS d, 3Y AS e
SELECT DATE '2024-02-29' AS d, TIMESTAMP '2024-02-29 12:34:56.789' AS t
SELECT X'1F2E' AS bytes
SELECT 'it\'s' AS quote, 'a\tb' AS tab, "double" AS quoted
SELECT id, v, d, f, n, s, b, day, at, ntz, tiny, small FROM t
SELECT * FROM t
SELECT * FROM nest
SELECT * FROM parts
SELECT * FROM dim
SELECT ID, V FROM T
SELECT t.id, T.Id AS other FROM t
SELECT * EXCEPT (d, f, ntz) FROM t
SELECT id AS `a name`, `v` FROM t

-- arithmetic
SELECT id, id + 1, v * 2, v - id, d / 2, id / 2, v / 3 FROM t
SELECT id, id % 3, -id % 3, v % 7, d % 2 FROM t
SELECT id div 2 AS a, -7 div 2 AS b, 7 div -2 AS c FROM t
SELECT tiny + tiny AS a, small * tiny AS b, tiny + 1 AS c FROM t WHERE id < 4
SELECT n + n, n * n, n - 1, n * 2 FROM t
SELECT n / 3 AS a, n / n AS b, 1 / n AS c, n / 7.5 AS e FROM t WHERE n <> 0
SELECT n % 3 AS a, n % 0.7 AS b FROM t
SELECT id FROM t WHERE d > 1e299 AND d < 1e301
SELECT id, st.c.d > 100 AS more FROM nest
SELECT id - 1 AS x, 1 - id AS y, v + d AS z, id * n AS w FROM t
SELECT CAST(5 AS SMALLINT) / CAST(2 AS SMALLINT) AS a, -5 / 2 AS b, -5 % 3 AS c, 5.5 % 2 AS e
SELECT avg(tiny) AS a, sum(small) AS b, avg(f) AS c, sum(f) AS e, avg(d) AS g FROM t
SELECT 1.0 / 3 AS a, 2.00 * 3.000 AS b, 1 - 0.9 AS c, 100 * 1.1 AS e, 7.0 / 0.3 AS g
SELECT n + 1.005 AS a, n * 1.1 AS b, n + id AS c, n * d AS e, n / 2.0D AS g FROM t
SELECT f + 1 AS a, f * d AS b, f + f AS c FROM t
SELECT -v, -n, -d, - 5 FROM t
SELECT id & 3 AS a, id | 8 AS b FROM t
SELECT mod(id, 4) AS a, pmod(-id, 4) AS b, pmod(id, -4) AS c FROM t
SELECT try_divide(id, 0) AS a, try_divide(v, 2) AS b FROM t
SELECT abs(id - 5), abs(n), abs(d) FROM t
SELECT round(d, 1), round(d), round(n, 1), round(n), round(id) FROM t
SELECT round(2.675D, 2) AS a, round(2.5D) AS b, round(-2.5D) AS c, round(1.005D, 2) AS e, round(0.5D) AS f
SELECT ceil(d), floor(d), ceil(n) AS a, floor(n) AS b, ceil(id) AS c FROM t WHERE d < 1e9
SELECT sqrt(v) AS a, power(id, 2) AS b, exp(id) AS c, ln(id) AS e, log10(id) AS g, sign(n) AS h FROM t
SELECT greatest(id, v), least(d, 1.0D) AS l, greatest(d, 0.0D) AS g FROM t
SELECT 0.1 + 0.2 AS exact, 0.1D + 0.2D AS inexact
SELECT 10 / 4 AS a, 10 div 4 AS b, 10 % 4 AS c, 10.0 / 4 AS e, 1 / 3.0 AS f
SELECT CAST(1 AS DECIMAL(38, 10)) * CAST(2 AS DECIMAL(20, 5)) AS wide
SELECT sum(n) / count(n) AS mean FROM t

-- casts
SELECT CAST(d AS INT) AS a, CAST(n AS INT) AS b, CAST(-1.9D AS INT) AS c, CAST(2.5 AS INT) AS e FROM t WHERE d < 1e9
SELECT CAST(id AS STRING), CAST(n AS STRING), CAST(b AS STRING), CAST(day AS STRING), CAST(at AS STRING) FROM t
SELECT CAST(d AS STRING) AS x FROM t WHERE NOT isnan(d) AND abs(d) < 1000
SELECT CAST(d AS STRING) AS x FROM t WHERE isnan(d)
SELECT CAST('12' AS INT) AS a, CAST(' 12 ' AS BIGINT) AS b, CAST('-3.5' AS DOUBLE) AS c, CAST('1.005' AS DECIMAL(5, 2)) AS e
SELECT TRY_CAST('1.5' AS INT) AS a, TRY_CAST('x' AS DOUBLE) AS b, TRY_CAST('' AS INT) AS c, TRY_CAST('999' AS TINYINT) AS e
SELECT TRY_CAST(s AS INT) AS a, TRY_CAST(s AS BOOLEAN) AS b FROM t
SELECT CAST('NaN' AS DOUBLE) AS a, CAST('-inf' AS DOUBLE) AS b, CAST('Infinity' AS DOUBLE) AS c, -1e308 * 10 AS e, TRY_CAST('nanx' AS DOUBLE) AS g
SELECT CAST('yes' AS BOOLEAN) AS a, CAST('F' AS BOOLEAN) AS b, CAST(1 AS BOOLEAN) AS c, CAST(true AS INT) AS e
SELECT CAST('2024-01-05' AS DATE) AS a, CAST('2024-1-5' AS DATE) AS b, CAST('2024-01-05 10:00:00' AS DATE) AS c
SELECT CAST('2024-03-31 02:30:00' AS TIMESTAMP) AS a, CAST('2024-03-31T02:30:00+02:00' AS TIMESTAMP) AS b, CAST('2024-03-31' AS TIMESTAMP) AS c
SELECT CAST(at AS DATE), CAST(day AS TIMESTAMP), CAST(at AS BIGINT) AS seconds FROM t
SELECT CAST(1700000000 AS TIMESTAMP) AS a, CAST(-1 AS TIMESTAMP) AS b
SELECT CAST(n AS DECIMAL(7, 1)) AS a, CAST(d AS DECIMAL(10, 1)) AS b, CAST(id AS DECIMAL(6, 2)) AS c FROM t WHERE abs(d) < 1000
SELECT CAST(f AS DOUBLE) AS a, CAST(id AS FLOAT) AS b, CAST(v AS DOUBLE) AS c FROM t
SELECT id::STRING AS a, '7'::INT AS b, string(id) AS c, int('8') AS e FROM t
SELECT CAST(1.005D AS DECIMAL(10, 2)) AS a, CAST(0.1D AS DECIMAL(20, 10)) AS b

-- nulls and conditions
SELECT id, k IS NULL, s IS NOT NULL, k <=> NULL AS same FROM t
SELECT id, k = 'a', k <> 'a', NOT b FROM t
SELECT id FROM t WHERE k = 'a' OR k IS NULL
SELECT id FROM t WHERE NOT (k = 'a')
SELECT id FROM t WHERE k IN ('a', 'b')
SELECT id FROM t WHERE k NOT IN ('a', 'b')
SELECT id, id IN (1, 2, NULL) AS found FROM t
SELECT id FROM t WHERE v BETWEEN 10 AND 40
SELECT id, coalesce(k, s, '?'), nvl(k, 'none'), ifnull(v, 0), nvl2(k, 'y', 'n') AS y FROM t
SELECT id, nullif(id, 3), nullif(k, 'a') FROM t
SELECT id, if(v > 20, 'big', 'small') AS size, CASE WHEN v > 20 THEN 1 WHEN v IS NULL THEN 2.5 ELSE 0 END AS c FROM t
SELECT CASE k WHEN 'a' THEN 'first' WHEN 'b' THEN 'second' END AS c FROM t
SELECT id, isnan(d), isnull(d), isnotnull(k) FROM t
SELECT id, b AND v > 20, b OR k IS NULL FROM t
SELECT id FROM t WHERE b IS TRUE
SELECT id FROM t WHERE b IS NOT TRUE
SELECT d = d AS same, d > 1e300 AS huge, d < 0 AS below FROM t
SELECT concat(k, s), concat('a', NULL) AS n, k || '-' || id AS c FROM t
SELECT concat_ws('-', k, s, NULL, 'z') AS w FROM t

-- strings
SELECT upper(s), lower(s), length(s) FROM t
SELECT upper('äé') AS a, length('😀é') AS b, lower('ÀÉ') AS c
SELECT substring(s, 2, 3) AS a, substring(s, 0, 2) AS b, substring(s, -3, 2) AS c, substr(s, 3) AS e FROM t
SELECT substring('abc', -5, 4) AS a, substring('abc', 5, 2) AS b, substring('abc', 2, -1) AS c, left('abc', 2) AS e
SELECT trim('  a  ') AS a, ltrim('  a ') AS b, rtrim(' a  ') AS c, length(trim(' \ta ')) AS e
SELECT lpad(k, 3, '*'), rpad(k, 3, '-'), lpad('abcd', 2, 'x') AS cut, rpad('é', 3) AS p FROM t
SELECT repeat('ab', 3) AS a, repeat('x', 0) AS b, replace('banana', 'an', 'AN') AS c, replace('abc', 'b') AS e
SELECT instr('banana', 'an') AS a, locate('na', 'banana') AS b, position('x', 'abc') AS c, instr('é😀x', 'x') AS e
SELECT startswith(s, 'h') AS a, endswith(s, 'o') AS b, contains(s, 'l') AS c FROM t
SELECT split('a,b,,c,', ',') AS a, split('a1b22c', '[0-9]+') AS b, split('', ',') AS c
SELECT split_part('a.b.c', '.', 2) AS a, split_part('a.b.c', '.', -1) AS b, split_part('a.b.c', '.', 9) AS c
SELECT translate('abcabc', 'ab', 'x') AS t, md5('x') AS m, sha2('x', 256) AS h, ascii('A') AS a, ascii('') AS z
SELECT s FROM t WHERE s LIKE 'h%'
SELECT s FROM t WHERE s LIKE '%\_%'
SELECT s FROM t WHERE s LIKE '_e%'
SELECT s FROM t WHERE s NOT LIKE '%l%'
SELECT s FROM t WHERE s ILIKE 'H%'
SELECT s FROM t WHERE s LIKE 'a/%%' ESCAPE '/'
SELECT s FROM t WHERE s RLIKE '^h.*o$'
SELECT s FROM t WHERE s RLIKE '[0-9]+'
SELECT s FROM t WHERE s REGEXP 'l{2}'
SELECT regexp_extract('a=1,b=22', '(\\w)=(\\d+)', 2) AS a, regexp_extract('none', '(\\d+)', 1) AS b, regexp_replace('a1b22', '\\d+', '#') AS c
SELECT regexp_replace('john smith', '(\\w+) (\\w+)', '$2 $1') AS swapped
SELECT s RLIKE '\\d' AS a, s RLIKE '^$' AS b, s RLIKE 'h|1' AS c, s NOT RLIKE '[a-c]' AS e FROM t
SELECT upper(s), s LIKE '%o', s RLIKE 'l+', NOT s = 'x', id BETWEEN 2 AND 3, id IN (1, 2) FROM t
SELECT substring(s, 2, 3), substr(s, 2), trim(s), replace(s, 'l', 'L'), concat(k, '-', s), s || k FROM t
SELECT regexp_replace(s, '[aeiou]', '*'), regexp_extract(s, '(l+)', 1), split(s, 'l'), lpad(s, 4, ' ') FROM t
SELECT coalesce(k, 'x'), if(id > 3, 'a', 'b'), CASE WHEN id > 3 THEN 1 ELSE 0 END, nvl2(k, 1, 2), greatest(id, 3) FROM t
SELECT s < 'h' AS a, s >= '' AS b, 'Z' < 'a' AS c FROM t
SELECT min(s), max(s) FROM t

-- dates and moments
SELECT year(at), month(at), day(at), hour(at), minute(at), second(at) FROM t
SELECT quarter(day), weekofyear(day), dayofweek(day), weekday(day), dayofyear(day) FROM t
SELECT extract(YEAR FROM day) AS y, extract(HOUR FROM at) AS h, extract(WEEK FROM day) AS w FROM t
SELECT date_trunc('hour', at) AS h, date_trunc('DAY', at) AS d, date_trunc('week', at) AS w, date_trunc('month', at) AS m FROM t
SELECT trunc(day, 'month') AS m, trunc(day, 'year') AS y, trunc(day, 'week') AS w, last_day(day) AS l FROM t
SELECT date_add(day, 3) AS a, date_sub(day, 31) AS b, datediff(DATE '2024-12-31', day) AS c, add_months(day, 1) AS e FROM t
SELECT day + INTERVAL 1 DAY AS a, day - INTERVAL 1 MONTH AS b, day + INTERVAL '2' YEAR AS c, day + 5 AS e FROM t
SELECT at + INTERVAL 90 MINUTES AS a, at - INTERVAL '1' DAY AS b, at + INTERVAL 1 MONTH AS c FROM t
SELECT day + INTERVAL 2 HOURS AS a FROM t
SELECT at FROM t WHERE at >= '2024-03-31'
SELECT at FROM t WHERE at BETWEEN '2024-03-31 00:00:00' AND TIMESTAMP '2024-03-31 02:00:00'
SELECT day FROM t WHERE day = '2024-02-29'
SELECT id FROM t WHERE at > TIMESTAMP '2024-01-01' - INTERVAL 1 YEAR
SELECT id FROM t WHERE at - TIMESTAMP '2024-03-31 00:00:00' > INTERVAL 90 MINUTES
SELECT date_format(at, 'yyyy-MM-dd HH:mm:ss.SSS') AS a, date_format(at, "d/M/yy h:mm a, EEE MMM") AS b, date_format(day, 'yyyyMMdd') AS c FROM t
SELECT unix_timestamp(at) AS a, unix_millis(at) AS b, unix_micros(at) AS c, unix_date(day) AS e FROM t
SELECT timestamp_seconds(1700000000) AS a, timestamp_millis(1700000000123) AS b, from_unixtime(0) AS c, make_date(2024, 2, 29) AS e
SELECT to_date('2024-05-06') AS a, to_timestamp('2024-05-06 07:08:09') AS b, to_date(at) AS c FROM t
SELECT from_utc_timestamp(at, 'Europe/Berlin') AS berlin, from_utc_timestamp(at, 'America/New_York') AS york FROM t
SELECT CAST(from_utc_timestamp(at, 'Europe/Berlin') AS DATE) AS day, count(*) AS n FROM t GROUP BY 1
SELECT date_add(day, 1), date_trunc('hour', at), datediff(day, DATE '2024-01-01') AS x, date_format(at, 'HH:mm'), year(day) + 1 FROM t
SELECT add_months(day, -1) AS a, add_months(day, 12) AS b, last_day(add_months(day, 1)) AS c, trunc(day, 'quarter') AS q FROM t
SELECT at + INTERVAL 1 DAY + INTERVAL 2 HOURS AS a, at - INTERVAL '30' SECOND AS b, at + INTERVAL 1.5 SECONDS AS c FROM t
SELECT unix_seconds(at) AS s, timestamp_micros(-1) AS m, from_unixtime(1700000000) AS f, CAST(at AS BIGINT) AS c FROM t
SELECT min(at), max(at), min(day), max(day) FROM t
SELECT at - lag(at) OVER (ORDER BY at) AS gap FROM t
SELECT ntz, ntz + INTERVAL 1 HOUR AS later, CAST(ntz AS DATE) AS day, CAST(ntz AS TIMESTAMP) AS at FROM t
SELECT to_date(at) = day AS same, day < at AS earlier FROM t

-- aggregates
SELECT count(*), count(k), count(DISTINCT k), sum(id), sum(v), avg(v), min(v), max(v) FROM t
SELECT sum(n), avg(n), min(n), max(n), sum(d), sum(tiny), avg(id) FROM t
SELECT k, count(*) AS c, sum(v) AS s, avg(n) AS a FROM t GROUP BY k
SELECT k, sum(v) FROM t GROUP BY k HAVING sum(v) > 20 AND count(*) > 1
SELECT K, COUNT(1) FROM t GROUP BY k
SELECT k AS key, count(*) AS c FROM t GROUP BY key ORDER BY c DESC, key
SELECT v > 20 AS big, count(*) FROM t GROUP BY v > 20
SELECT count(DISTINCT k, b) AS pairs FROM t
SELECT count(DISTINCT d) AS ds, count(d) AS n FROM t
SELECT d, count(*) FROM t GROUP BY d
SELECT count_if(v > 20) AS a, count(*) FILTER (WHERE b) AS c, sum(v) FILTER (WHERE k = 'a') AS s FROM t
SELECT stddev(v) AS a, stddev_pop(v) AS b, variance(id) AS c, var_pop(id) AS e, stddev(id) FILTER (WHERE id = 1) AS g FROM t
SELECT bool_and(b) AS a, bool_or(b) AS o, every(b) AS e, some(b) AS s FROM t
SELECT max_by(s, v) AS a, min_by(s, id) AS b FROM t
SELECT sort_array(collect_list(id)) AS ids, sort_array(collect_set(k)) AS ks, collect_list(v) AS none FROM t WHERE id < 3
SELECT collect_list(id) AS empty FROM t WHERE id > 1000
SELECT sum(v), count(*), max(s), avg(n) FROM t WHERE id > 1000
SELECT percentile(id, 0.25) AS q, median(v) AS m, percentile(d, 0.5) AS p FROM t WHERE d < 1e9
SELECT corr(id, v) AS c, covar_pop(id, v) AS p, covar_samp(id, v) AS s FROM t
SELECT DISTINCT k, b FROM t
SELECT count(*) - count(k) AS nulls, sum(v) / count(*) AS mean, max(v) - min(v) AS spread FROM t
SELECT k, count(*) AS c FROM t GROUP BY 1 HAVING c > 1
SELECT year(day) AS y, month(day) AS m, count(*) AS c FROM t GROUP BY year(day), month(day)
SELECT upper(k) AS u, sum(id) FROM t GROUP BY upper(k) ORDER BY u
SELECT id % 2 AS odd, sum(CASE WHEN b THEN v ELSE 0 END) AS s FROM t GROUP BY id % 2
SELECT k, max(at) AS last, min(day) AS first, count(DISTINCT day) AS days FROM t GROUP BY k
SELECT sum(DISTINCT id % 3) AS s, avg(DISTINCT id % 3) AS a FROM t
SELECT k, b, sum(v) AS s FROM t GROUP BY ROLLUP(k, b)
SELECT k, b, sum(v) AS s FROM t GROUP BY CUBE(k, b)
SELECT k, b, count(*) AS c, grouping(k) AS gk, grouping_id(k, b) AS g FROM t GROUP BY GROUPING SETS ((k, b), (k), ())
SELECT k, sum(v) AS s FROM t GROUP BY ALL
SELECT date_trunc('day', at) AS day, count(*) FROM t GROUP BY date_trunc('day', at)
SELECT window.start, window.end, count(*) AS c FROM t GROUP BY window(at, '1 hour')
SELECT window(at, '15 minutes') AS w, sum(v) AS s FROM t GROUP BY window(at, '15 minutes')

-- windows
SELECT id, row_number() OVER (ORDER BY id) AS r, rank() OVER (PARTITION BY k ORDER BY v) AS rk FROM t
SELECT id, row_number() OVER (PARTITION BY k ORDER BY id DESC) FROM t
SELECT id, sum(v) OVER (PARTITION BY k) FROM t
SELECT id, sum(v) OVER (PARTITION BY k ORDER BY id) FROM t
SELECT id, avg(n) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS a FROM t
SELECT id, dense_rank() OVER (ORDER BY k) AS d, percent_rank() OVER (ORDER BY k) AS p, cume_dist() OVER (ORDER BY k) AS c, ntile(3) OVER (ORDER BY id) AS n FROM t
SELECT id, lag(v) OVER (ORDER BY id) AS a, lead(v, 2) OVER (ORDER BY id) AS b, lag(v, 1, 0) OVER (ORDER BY id) AS c FROM t
SELECT id, first_value(v) OVER (PARTITION BY k ORDER BY id) AS f, last_value(v) OVER (PARTITION BY k ORDER BY id) AS l FROM t
SELECT id, lag(k) IGNORE NULLS OVER (ORDER BY id) AS before FROM t
SELECT id, count(*) OVER w AS c, max(v) OVER w AS m FROM t WINDOW w AS (PARTITION BY k ORDER BY id)
SELECT id, rank() OVER (ORDER BY v DESC) AS r, rank() OVER (ORDER BY v NULLS LAST) AS l FROM t
SELECT k, sum(v) AS s, rank() OVER (ORDER BY sum(v) DESC) AS r FROM t GROUP BY k
SELECT id, nth_value(v, 2) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS second FROM t
SELECT * FROM (SELECT id, k, row_number() OVER (PARTITION BY k ORDER BY id DESC) AS r FROM t) WHERE r = 1

-- order
SELECT id, v FROM t ORDER BY v, id
SELECT id, k, s FROM t ORDER BY k DESC NULLS FIRST, s NULLS LAST, id
SELECT id, b, day FROM t ORDER BY b, day DESC, id
SELECT id, v FROM t ORDER BY v DESC, id
SELECT id, v FROM t ORDER BY v NULLS LAST, id DESC
SELECT id, d FROM t ORDER BY d DESC, id
SELECT id, k FROM t ORDER BY k ASC NULLS LAST, 1 DESC
SELECT id AS x, v FROM t ORDER BY x DESC LIMIT 3
SELECT id FROM t ORDER BY -id LIMIT 2 OFFSET 1
SELECT k, count(*) FROM t GROUP BY k ORDER BY count(*) DESC, k
SELECT DISTINCT k FROM t ORDER BY k
SELECT upper(k) AS k FROM t ORDER BY k, id
SELECT id + 1 AS id FROM t ORDER BY id DESC

-- joins
SELECT t.id, dim.label FROM t JOIN dim ON t.k = dim.k
SELECT t.id, d.label FROM t LEFT JOIN dim d ON t.k = d.k AND d.w > 1
SELECT t.id, d.label FROM t RIGHT JOIN dim d ON t.k = d.k
SELECT t.id, d.label FROM t FULL OUTER JOIN dim d ON t.k = d.k
SELECT * FROM dim JOIN (SELECT k, id FROM t) USING (k)
SELECT k, label, id FROM dim FULL JOIN (SELECT k, id FROM t) USING (k)
SELECT k, w FROM (SELECT k FROM t) LEFT JOIN dim USING (k)
SELECT id FROM t LEFT SEMI JOIN dim ON t.k = dim.k
SELECT id FROM t LEFT ANTI JOIN dim ON t.k = dim.k
SELECT count(*) FROM t CROSS JOIN dim
SELECT count(*) AS c FROM t, dim WHERE t.k = dim.k
SELECT a.id, b.id AS other FROM t a JOIN t b ON a.k <=> b.k AND a.id < b.id
SELECT t.id, label, region FROM t JOIN dim ON t.k = dim.k LEFT JOIN parts ON parts.id = t.id

-- subqueries, CTEs and set operations
WITH big AS (SELECT * FROM t WHERE v > 20) SELECT count(*) FROM big
WITH a AS (SELECT id FROM t), b AS (SELECT id + 1 AS id FROM a) SELECT sum(id) FROM b
WITH x(i, j) AS (SELECT id, v FROM t) SELECT i, j FROM x WHERE j IS NOT NULL
WITH t AS (SELECT 1 AS one) SELECT * FROM t
SELECT id FROM t WHERE v = (SELECT max(v) FROM t)
SELECT id FROM t WHERE k IN (SELECT k FROM dim)
SELECT id FROM t WHERE k NOT IN (SELECT k FROM dim WHERE k IS NOT NULL)
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM dim WHERE dim.k = t.k)
SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM dim WHERE dim.k = t.k AND w > 1)
SELECT k, (SELECT max(label) FROM dim WHERE dim.k = t.k) AS l FROM t
SELECT x.c FROM (SELECT count(*) AS c FROM t) x
SELECT id FROM t UNION ALL SELECT w FROM dim
SELECT k FROM t UNION SELECT k FROM dim
SELECT k FROM t INTERSECT SELECT k FROM dim
SELECT k FROM t EXCEPT SELECT k FROM dim
SELECT k FROM t EXCEPT ALL SELECT k FROM dim
SELECT k FROM t UNION SELECT k FROM dim INTERSECT SELECT k FROM t
(SELECT k FROM t UNION ALL SELECT k FROM dim) EXCEPT SELECT 'a'
SELECT k FROM t INTERSECT ALL SELECT k FROM dim
SELECT k FROM t MINUS SELECT k FROM dim
SELECT id AS x FROM t UNION ALL SELECT n FROM t ORDER BY x LIMIT 5
SELECT 1 AS a UNION ALL SELECT 2.5 UNION ALL SELECT NULL
SELECT * FROM VALUES (1, 'a'), (2, NULL) AS v(n, s)
SELECT * FROM (VALUES (1, 2.5), (3, 4)) AS v(a, b) WHERE a > 1
VALUES (1, 'x'), (2, 'y')
SELECT id AS x, x + 1 AS y, y * 2 AS z FROM t
SELECT (SELECT 1) AS one, 1 WHERE 1 = 1

-- nested
SELECT id, st.a, st.c.d, st.B FROM nest
SELECT id, st FROM nest WHERE st.a > 1
SELECT id, nest.st.b AS b, upper(st.b) FROM nest
SELECT id, size(xs), size(m), xs[0] AS first FROM nest WHERE size(xs) > 0
SELECT element_at(xs, 1) AS a, element_at(xs, -1) AS b, get(xs, 9) AS c, try_element_at(xs, 9) AS e FROM nest WHERE size(xs) > 0
SELECT m['x'] AS x, m['none'] AS n, element_at(m, 'y') AS y FROM nest
SELECT sort_array(map_keys(m)) AS k, sort_array(map_values(m)) AS v, map_contains_key(m, 'x') AS h FROM nest
SELECT array_contains(xs, 2) AS a, array_contains(tags, 'red') AS b, array_position(xs, 2) AS c FROM nest
SELECT sort_array(xs) AS a, sort_array(xs, false) AS b, array_max(xs) AS c, array_min(xs) AS e FROM nest
SELECT array_join(tags, ',') AS a, array_join(tags, '-', '?') AS b, slice(xs, 2, 2) AS c, reverse(xs) AS e FROM nest
SELECT array(1, 2, 3) AS a, array('x', NULL) AS b, array(1, 2.5) AS c, named_struct('a', 1, 'b', 'x') AS e, struct(1 AS p, 2 AS q) AS g
SELECT map('a', 1, 'b', 2) AS m, map('a', 1)['a'] AS one
SELECT transform(xs, x -> x * 2) AS a, filter(xs, x -> x > 1) AS b FROM nest
SELECT id, explode(xs) AS x FROM nest
SELECT id, explode(tags) FROM nest
SELECT id, explode_outer(xs) AS x FROM nest
SELECT id, posexplode(tags) FROM nest
SELECT id, explode(m) FROM nest
SELECT id, x FROM nest LATERAL VIEW explode(xs) e AS x WHERE x > 1
SELECT id, x FROM nest LATERAL VIEW OUTER explode(xs) e AS x
SELECT x, count(*) AS c FROM nest LATERAL VIEW explode(xs) AS x GROUP BY x
SELECT id, key, value FROM nest LATERAL VIEW explode(m) e AS key, value
SELECT id, window.start, window.end AS until FROM nest
SELECT id FROM nest WHERE window.start >= '2024-03-31 01:00:00'
SELECT window, count(*) AS c FROM nest GROUP BY window
SELECT st.*, id FROM nest
SELECT concat(xs, array(9)) AS more FROM nest

-- partitions, evolution and versions
SELECT region, count(*) AS c, sum(id) AS s FROM parts GROUP BY region
SELECT id, added FROM parts WHERE region IS NULL
SELECT id, region, year FROM parts WHERE year = 2024 AND region = 'north east'
SELECT id, more.x, more.y FROM parts
SELECT count(*) FROM parts VERSION AS OF 0
SELECT * FROM parts VERSION AS OF 0
SELECT count(*) FROM parts FOR VERSION AS OF 1
SELECT a.id FROM parts a LEFT ANTI JOIN parts VERSION AS OF 0 b ON a.id = b.id
SELECT count(*) AS c FROM parts TIMESTAMP AS OF '{moment}'

-- the names of columns that nobody named
SELECT year(day), quarter(day), hour(at), last_day(day), unix_timestamp(at), unix_date(day), to_date(at), weekday(day) FROM t
SELECT date_sub(day, 1), datediff(day, day), add_months(day, 1), trunc(day, 'month'), date(at), from_unixtime(id) FROM t
SELECT lpad(k, 3), rpad(k, 3), replace(s, 'l'), instr(s, 'l'), locate('l', s), position('l', s), left(s, 2), ltrim(s), repeat(k, 2) FROM t
SELECT startswith(s, 'h'), contains(s, 'l'), split_part(s, 'l', 1), translate(s, 'l', 'L'), md5(k), concat_ws('-', k, s), char_length(s) FROM t
SELECT sqrt(id), power(id, 2), exp(id), ln(id), log10(id), sign(id), mod(id, 2), pmod(id, 2), pow(id, 2), abs(id), sin(id) FROM t
SELECT stddev(v), variance(v), mean(v), median(v), percentile(v, 0.5), bool_and(b), max_by(s, id), count_if(b), count(DISTINCT k), std(v), some(b), every(b) FROM t
SELECT sort_array(xs), size(xs), map_keys(m), element_at(tags, 1), array_contains(xs, 1), array_max(xs), xs[0], m['x'] FROM nest WHERE id = 1
SELECT rank() OVER (ORDER BY id), dense_rank() OVER (PARTITION BY k ORDER BY id DESC), count(*) OVER (), ntile(2) OVER (ORDER BY id) FROM t
SELECT sum(v) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW), max(id) OVER (PARTITION BY b ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) FROM t
SELECT CAST(id + 1 AS STRING), CAST('5' AS INT), TRY_CAST(s AS INT), extract(YEAR FROM day), id::BIGINT, CAST(n AS DECIMAL(12, 1)) FROM t
SELECT t.id + t.v, -t.id, NOT t.b, t.k IS NULL, t.id = 1 AND t.b, t.id <> 1, t.k <=> 'a', nullif(t.id, 1), 'x' FROM t
SELECT upper(st.b), st.a + 1, nest.st.a, array(id, 1), greatest(id, 2), ifnull(st.b, '-'), nvl(st.b, '-') FROM nest
SELECT sum(v) FILTER (WHERE b), count(*) FILTER (WHERE id > 3), sum(DISTINCT id), sum(n) + 1, max(at) FROM t
SELECT CASE k WHEN 'a' THEN 1 ELSE 2 END, CASE WHEN b THEN 'y' END, id BETWEEN 1 AND 2, k IN ('a'), s LIKE 'h%', s NOT LIKE 'h%', id div 2 FROM t
SELECT date_format(day, 'yyyy'), date_trunc('day', at), window(at, '1 hour') FROM t
SELECT day + INTERVAL 1 DAY AS d, at + INTERVAL 1 HOUR AS h, timestamp_seconds(id), unix_millis(at) FROM t
SELECT length(s), len(s), ascii(s), sha2(k, 256), lower(k), ucase(k), substring(s, 2), ceiling(id), signum(id) FROM t
SELECT string(id), int(s) FROM t WHERE s = '12'
SELECT percent_rank() OVER (ORDER BY id), cume_dist() OVER (ORDER BY id), log2(id), cos(id), tan(id), atan(id), concat(string(id), k) FROM t
SELECT min(d), max(f), min(b), max(tiny) FROM t GROUP BY id
