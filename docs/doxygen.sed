# Comments of the headers as Doxygen wants them: before what they say something of, or behind it on its line.
s/([<>%#\\])/\\\1/g
s/^\\#/#/
/^#include/s/\\([<>])/\1/g
1s#^/\* #/** \\file #
s#^/\* ---- .* ---- \*/$##
s#^/\* ---- (.*) ----$#/** \1.\n#
s#^( *)/\* #\1/** #
s#([;,{})] *)/\* #\1/**< #
