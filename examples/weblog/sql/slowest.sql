-- table: complete

/* The three pages with the slowest requests of each minute. */
SELECT minute, place, page, seconds
FROM (
  SELECT *, row_number() OVER (PARTITION BY minute ORDER BY seconds DESC, page) AS place
  FROM by_page
)
WHERE place <= 3
