-- What the tables hold when every message has arrived, by DuckDB from the files of the package.
-- Variables: `data`, the folder of the package; `first` and `last`, the days; `airlines`, a file.

SET timezone = 'UTC';

CREATE TABLE flight AS
SELECT carrier, flight, tailnum AS tail, origin, dest, dep_delay, arr_delay, air_time,
       time_hour + to_minutes(minute) AS scheduled, sched_arr_time // 100 AS hour_due,
       sched_arr_time % 100 AS minute_due, coalesce(tzone, 'America/Puerto_Rico') AS zone
FROM read_csv(getvariable('flights'), nullstr = 'NA')
LEFT JOIN read_csv(getvariable('data') || '/airports.csv', nullstr = 'NA') ON dest = faa
WHERE make_date(year, month, day) BETWEEN getvariable('first') AND getvariable('last');

CREATE TABLE departed AS
SELECT carrier, flight, scheduled, tail, origin, dest, dep_delay AS delay,
       scheduled + to_minutes(coalesce(dep_delay, 0)) AS moment
FROM flight;

-- The schedule has the time of day at the other airport: the first after the departure.
CREATE TABLE arrived AS
WITH local AS (
  SELECT *, timezone(zone, scheduled) AS departs,
         date_trunc('day', departs) + to_hours(hour_due) + to_minutes(minute_due) AS due
  FROM flight WHERE arr_delay IS NOT NULL
)
SELECT carrier, flight, scheduled, tail, origin, dest, arr_delay AS delay,
       timezone(zone, CASE WHEN due > departs THEN due ELSE due + INTERVAL 1 DAY END)
         + to_minutes(arr_delay) AS moment, air_time
FROM local;

CREATE TABLE observed AS
SELECT origin, temp, wind_speed, precip, visib, time_hour AS moment
FROM read_csv(getvariable('data') || '/weather.csv', nullstr = 'NA')
WHERE make_date(year, month, day) BETWEEN getvariable('first') AND getvariable('last');

CREATE TABLE movement AS
SELECT 'departure' AS kind, tail, origin AS place, carrier, flight, moment, delay
FROM departed WHERE delay IS NOT NULL AND tail IS NOT NULL
UNION ALL
SELECT 'arrival', tail, dest, carrier, flight, moment, delay FROM arrived WHERE tail IS NOT NULL;

CREATE TABLE hourly AS
SELECT origin, time_bucket(INTERVAL 1 HOUR, moment) AS began, began + INTERVAL 1 HOUR AS ended,
       count(delay) AS departed,
       count(*) - count(delay) AS cancelled, count(*) FILTER (delay >= 15) AS late,
       avg(delay) AS mean_delay, max(delay) AS worst_delay
FROM departed GROUP BY ALL;

CREATE TABLE flown AS
SELECT d.* EXCLUDE (moment, delay), d.moment, d.delay, a.moment AS arrived_at, a.delay AS arrival_delay,
       a.air_time
FROM departed d LEFT JOIN arrived a
  ON a.carrier = d.carrier AND a.flight = d.flight AND a.scheduled = d.scheduled
  AND a.moment BETWEEN d.moment AND d.moment + INTERVAL 13 HOURS
WHERE d.delay IS NOT NULL;

CREATE TABLE in_weather AS
WITH seen AS (
  SELECT d.*, if(d.moment - w.moment <= INTERVAL 2 HOURS, w, NULL) AS w
  FROM departed d ASOF LEFT JOIN observed w ON d.origin = w.origin AND d.moment >= w.moment
)
SELECT carrier, flight, scheduled, origin, moment, delay, w.temp, w.wind_speed, w.precip, w.visib,
       w.moment AS observed_at
FROM seen;

CREATE TABLE rotations AS
WITH begun AS (
  SELECT *, moment > lag(moment) OVER movements + INTERVAL 8 HOURS AS begins
  FROM movement WINDOW movements AS (PARTITION BY tail ORDER BY moment)
), numbered AS (
  SELECT *, count(*) FILTER (begins) OVER (PARTITION BY tail ORDER BY moment) AS day FROM begun
)
SELECT tail, min(moment) AS began, max(moment) + INTERVAL 8 HOURS AS ended,
       count(*) FILTER (kind = 'departure') AS departures,
       count(*) FILTER (kind = 'arrival') AS arrivals, max(delay) AS worst_delay
FROM numbered GROUP BY tail, day;

CREATE TABLE knock_on AS
WITH followed AS (
  SELECT *, lead(struct_pack(kind, flight, place, delay, moment), 1) OVER movements AS landed,
         lead(struct_pack(kind, flight, place, delay, moment), 2) OVER movements AS next
  FROM movement WINDOW movements AS (PARTITION BY tail ORDER BY moment, kind, flight)
)
SELECT tail, moment AS began, flight, landed.place, next.flight AS next_flight, delay,
       landed.delay AS arrival_delay, next.delay AS next_delay, next.moment AS ended
FROM followed
WHERE kind = 'departure' AND landed.kind = 'arrival' AND next.kind = 'departure'
  AND least(delay, landed.delay, next.delay) >= 30 AND next.moment <= moment + INTERVAL 12 HOURS;

CREATE TABLE worst AS
SELECT time_bucket(INTERVAL 1 DAY, moment) AS began, began + INTERVAL 1 DAY AS ended,
       origin, dest, count(*) AS late, sum(delay) AS minutes,
       row_number() OVER (
         PARTITION BY began ORDER BY minutes DESC, origin DESC, dest DESC
       ) AS rank
FROM arrived WHERE delay > 0 GROUP BY began, origin, dest QUALIFY rank <= 5;

CREATE TABLE by_airline AS
SELECT carrier, name AS airline, count(*) AS arrived, count(*) FILTER (delay >= 15) AS late,
       avg(delay) AS mean_delay
FROM arrived LEFT JOIN read_csv(getvariable('data') || '/airlines.csv') USING (carrier)
GROUP BY ALL;

CREATE TABLE aircraft AS
SELECT tail, moment, kind, place, carrier, flight
FROM movement
QUALIFY row_number() OVER (
  PARTITION BY tail ORDER BY moment DESC, kind DESC, place DESC, carrier DESC, flight DESC
) = 1;

CREATE TABLE stranded AS
SELECT tail, flight, place, delay, moment AS arrived_at, moment + INTERVAL 12 HOURS AS until
FROM movement landed
WHERE kind = 'arrival' AND delay >= 120 AND NOT EXISTS (
  FROM movement next
  WHERE next.tail = landed.tail AND next.kind = 'departure'
    AND next.moment >= landed.moment AND next.moment <= landed.moment + INTERVAL 12 HOURS
);
