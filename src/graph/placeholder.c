/* SPDX-License-Identifier: Apache-2.0 */
/* placeholder.c - removed with the first file of this layer. */
typedef int qn_graph_placeholder;
