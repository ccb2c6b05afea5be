-- table: update
-- key: minute, page

/* The same by page, with the longest time one had to wait. */
SELECT window.start AS minute, page, count(*) AS requests, max(seconds) AS seconds
FROM requests
GROUP BY window(at, '1 minute'), page
