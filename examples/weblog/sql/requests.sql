/* The requested page, without parameters, and whether the request failed: a view. */
SELECT at, ip, split_part(url, '?', 1) AS page, status >= 400 AS is_error, seconds
FROM log
