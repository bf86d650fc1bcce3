/* cmocka with the headers that it wants before itself. */
#ifndef G3_TESTS_CM_H
#define G3_TESTS_CM_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* in this order */
#include <cmocka.h>
#endif
