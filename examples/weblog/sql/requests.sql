/* What was asked for, without the parameters, and whether it was had: a view. */
SELECT at, split_part(url, '?', 1) AS page, status >= 400 AS is_error, seconds
FROM log
