/* SPDX-License-Identifier: Apache-2.0 */
/* recipe.h - how the makers of a model sample it, read from its files.
 *
 *     Hugging Face, MLX   generation_config.json: do_sample temperature top_p top_k min_p
 *                         repetition_penalty
 *     GGUF                general.sampling.temp .top_p .top_k .min_p .penalty_repeat
 *
 * Thread: values only.
 */
#ifndef QN_MODEL_RECIPE_H
#define QN_MODEL_RECIPE_H
#include "model/model.h"
#include "model/source.h"

/* A null or absent value is not set. do_sample: false means temperature 0. Errors: FORMAT (no number),
 * LIMIT (out of range); each names file and key, found and expected. */
qn_code qn_source_recipe(qn_recipe *out, const qn_source *s, qn_err *err);

#endif
