-- table: update
-- key: minute, page

/* Requests per minute and page, with the longest duration. */
SELECT window.start AS minute, page, count(*) AS requests, max(seconds) AS seconds
FROM requests
GROUP BY window(at, '1 minute'), page
