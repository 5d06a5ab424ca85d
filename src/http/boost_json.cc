// Boost.JSON's own code, compiled here instead of linked: its package of headers is all it takes.
#include <boost/json/src.hpp>
