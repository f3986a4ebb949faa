/* SPDX-License-Identifier: Apache-2.0 */
/* rng.c - the one source of true randomness; all else is a function of a seed. */
#include "base/rng.h"

#include <errno.h>
#include <unistd.h>

qn_code qn_rng_fresh_seed(uint64_t *out, qn_err *err)
{
    uint64_t seed = 0;
    *out = 0;
    if (getentropy(&seed, sizeof seed) != 0)
        return qn_fail_sys(err, QN_E_IO, errno, "8 bytes of entropy");
    *out = seed;
    return QN_OK;
}
