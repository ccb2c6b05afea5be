-- table: update
-- key: minute

/* Requests and errors per minute. */
SELECT window.start AS minute, count(*) AS requests, count_if(is_error) AS errors
FROM requests
GROUP BY window(at, '1 minute')
