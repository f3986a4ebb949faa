/* SPDX-License-Identifier: Apache-2.0 */
/* mlx_copy_test.c - the copies hold the very tensors that mlx's own quantiser makes of the starter. */
#include "mlx_copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "qt.h"

static void check_copy(qt *t, uint32_t bits)
{
    char golden[96], dir[] = "/tmp/quern-mlx-XXXXXX", path[128], digest[65];
    qn_err err = {0};
    uint8_t *text = NULL;
    size_t n = 0;
    snprintf(golden, sizeof golden, "tests/golden/smollm2/greedy-mlx%u.json", bits);
    if (!QT_OKF(t, qn_file_read(&text, &n, golden, 1 << 20, &err) == QN_OK, "%s", err.msg)) return;
    if (!QT_OK(t, mkdtemp(dir) != NULL)) goto out;
    QT_OKF(t, mlx_copy(QUERN_STARTER, bits, dir, digest, &err) == QN_OK, "%s", err.msg);
    const char *key = "\"tensors_sha256\": \"";
    const char *at = strstr((const char *)text, key);
    if (QT_OK(t, at != NULL))
        QT_OKF(t, strncmp(at + strlen(key), digest, 64) == 0, "%u bits: digest %s", bits, digest);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    QT_OK(t, unlink(path) == 0);
    snprintf(path, sizeof path, "%s/config.json", dir);
    QT_OK(t, unlink(path) == 0 && rmdir(dir) == 0);
out:
    qn_free(text);
}

static void a_4_bit_copy_equals_that_of_mlx(qt *t) { check_copy(t, 4); }
static void an_8_bit_copy_equals_that_of_mlx(qt *t) { check_copy(t, 8); }

static void other_widths_are_refused(qt *t)
{
    char digest[65];
    qn_err err = {0};
    QT_EQ(t, mlx_copy(QUERN_STARTER, 5, "/tmp", digest, &err), QN_E_INVAL);
}

QT_MAIN(QT(a_4_bit_copy_equals_that_of_mlx), QT(an_8_bit_copy_equals_that_of_mlx),
        QT(other_widths_are_refused))
