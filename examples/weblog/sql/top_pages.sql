-- table: complete

/* The three most requested pages of each minute; of equals, the first by name. */
SELECT minute, place, page, requests
FROM (
  SELECT *, row_number() OVER (PARTITION BY minute ORDER BY requests DESC, page) AS place
  FROM by_page
)
WHERE place <= 3
