-- table: update
-- key: minute

/* How much was asked for, and how often in vain. */
SELECT window.start AS minute, count(*) AS requests, count_if(is_error) AS errors
FROM requests
GROUP BY window(at, '1 minute')
