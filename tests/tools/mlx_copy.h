/* SPDX-License-Identifier: Apache-2.0 */
/* mlx_copy.h - an MLX-affine copy of a llama-architecture GGUF, for tests that compare with mlx-lm.
 *
 * Every matrix, the embedding too, is dequantised to f32, rounded to the copy's float type and
 * quantised in groups of 64; q and k rows go back from the GGUF's order to the half-split one. The
 * result is bit-equal to what tests/oracle/smollm2.py makes with mlx itself: the digest says so.
 *
 * Thread: any.
 */
#ifndef QN_TEST_MLX_COPY_H
#define QN_TEST_MLX_COPY_H
#include "base/status.h"

/* Writes dir/model.safetensors and dir/config.json; dir must exist. bits: 4 (scales and norms bf16)
 * or 8 (f16). digest: SHA-256, in hex, over the tensors in name order: name, a zero byte, the bytes.
 * Errors: those of the GGUF reader and of the safetensors writer; INVAL for other bits;
 * UNSUPPORTED for a tensor that this small copier knows no name for. */
qn_code mlx_copy(const char *gguf, uint32_t bits, const char *dir, char digest[65], qn_err *err);

#endif
