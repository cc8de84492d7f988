package classify

// genericNames are plain SQL functions that every database has, or lacks, but
// which no database makes write. They are all that is harmless under Generic,
// where nothing is known of the server.
const genericNames = `
	count sum min max avg
	row_number rank dense_rank percent_rank cume_dist ntile
	lag lead first_value last_value nth_value
	coalesce nullif greatest least cast exists any some all
	lower upper trim ltrim rtrim lpad rpad substring concat concat_ws replace reverse
	length char_length character_length octet_length position left right repeat ascii
	abs ceil ceiling floor round sign mod power exp ln log log10 sqrt pi
	sin cos tan asin acos atan atan2 degrees radians
	extract now current_timestamp current_time localtime localtimestamp
	char decimal`
