/* SPDX-License-Identifier: Apache-2.0 */
/* verb_completion.c - `quern completion bash|zsh|fish`: a script for the shell, and what it asks.
 *
 * The scripts are short: at each Tab they call `quern completion words -- WORD...` and show what it
 * prints, so that the candidates come from the option tables of the very program that will run. A line
 * is a candidate, a tab, what it is; the line ":files" means that names of files fit too.
 */
#include <string.h>

#include "cli/open.h"

enum { MAX_WORDS = 4096 };
#define WORD "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+/@:"

static const char bash[] =
    "# quern completion for bash: source <(quern completion bash)\n"
    "_quern()\n"
    "{\n"
    "    local line files= cur=${COMP_WORDS[COMP_CWORD]} cut=\n"
    "    local -a words=()\n"
    "    COMPREPLY=()\n"
    "    local i\n"
    "    for ((i = 1; i <= COMP_CWORD; i++)); do # bash cuts --name=value at the \"=\"\n"
    "        if [[ ${COMP_WORDS[i]} == = && ${#words[@]} -gt 0 ]]; then\n"
    "            words[-1]+==\n"
    "        elif [[ ${#words[@]} -gt 0 && ${words[-1]} == --*= ]]; then\n"
    "            words[-1]+=${COMP_WORDS[i]}\n"
    "        else\n"
    "            words+=(\"${COMP_WORDS[i]}\")\n"
    "        fi\n"
    "    done\n"
    "    [[ ${words[-1]} == --*=* ]] && cut=${words[-1]%%=*}=\n"
    "    [[ $cur == = ]] && cur=\n"
    "    while IFS= read -r line; do\n"
    "        if [[ $line == :files ]]; then files=1; continue; fi\n"
    "        line=${line%%$'\\t'*}\n"
    "        COMPREPLY+=(\"${line#\"$cut\"}\")\n"
    "    done < <(\"${COMP_WORDS[0]}\" completion words -- \"${words[@]}\" 2>/dev/null)\n"
    "    if [[ $files ]]; then\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        while IFS= read -r line; do COMPREPLY+=(\"$line\"); done < <(compgen -f -- \"$cur\")\n"
    "    fi\n"
    "}\n"
    "complete -F _quern quern\n";

static const char zsh[] =
    "#compdef quern\n"
    "# quern completion for zsh: source <(quern completion zsh), or a file _quern on $fpath\n"
    "_quern()\n"
    "{\n"
    "    local line name text files\n"
    "    local -a shown\n"
    "    while IFS= read -r line; do\n"
    "        if [[ $line == :files ]]; then files=1; continue; fi\n"
    "        name=${line%%$'\\t'*} text=${line#*$'\\t'}\n"
    "        shown+=(\"${name//:/\\\\:}:$text\")\n"
    "    done < <(\"${words[1]}\" completion words -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
    "    (( $#shown )) && _describe quern shown\n"
    "    if [[ $files == 1 ]]; then\n"
    "        compset -P '--*='\n"
    "        _files\n"
    "    fi\n"
    "}\n"
    "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _quern \"$@\"; else compdef _quern "
    "quern; fi\n";

static const char fish[] =
    "# quern completion for fish: quern completion fish | source\n"
    "function __quern_complete\n"
    "    set -l words (commandline -opc) (commandline -ct)\n"
    "    set -l program $words[1]\n"
    "    set -l lines ($program completion words -- $words[2..] 2>/dev/null)\n"
    "    for line in $lines\n"
    "        if test \"$line\" = :files\n"
    "            __fish_complete_path (commandline -ct)\n"
    "        else\n"
    "            echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c quern -f -a '(__quern_complete)'\n";

/* Prints prefix + candidate where it begins with what is typed. */
static void offer(qn_io *io, const char *prefix, qn_str word, qn_str typed, const char *about)
{
    if (qn_str_has_prefix(word, typed))
        qn_io_print(io, "%s%.*s\t%s\n", prefix, QN_STR_ARG(word), about);
}

static void offer_words(qn_io *io, const char *prefix, const char *words, qn_str typed,
                        const char *about)
{
    qn_str rest = qn_str_z(words), word;
    while (qn_str_split(&word, &rest, '|')) offer(io, prefix, word, typed, about);
}

static bool names_files(const char *arg) { return strstr(arg, "FILE") || strstr(arg, "DIR"); }

static bool names_models(const char *arg) { return strncmp(arg, "NAME", 4) == 0; }

/* Only words are offered that a shell takes as they are. A store that cannot be read offers none. */
static void offer_models(qn_io *io, const char *prefix, qn_str typed)
{
    quern_store *store = NULL;
    quern_store_list *list = NULL;
    if (qn_cli_store(&store, NULL, io, NULL) == QN_OK)
        (void)quern_store_list_open(&list, store, NULL, NULL);
    for (size_t i = 0; i < quern_store_list_count(list); i++) {
        char size[16];
        const quern_store_model *m = quern_store_list_at(list, i);
        if (!m->canonical || m->name[strspn(m->name, WORD)]) continue;
        qn_bytes_text(size, m->bytes);
        offer(io, prefix, qn_str_z(m->name), typed, size);
    }
    quern_store_list_close(list);
    quern_store_close(store);
}

/* What the value of an option may be; prefix is "--name=" where both are one word. */
static void offer_value(qn_io *io, const char *prefix, const qn_opt *o, qn_str typed)
{
    if (o->kind == QN_OPT_CHOICE) offer_words(io, prefix, o->arg, typed, o->help ? o->help : "");
    if (o->kind == QN_OPT_TEXT && names_models(o->arg)) offer_models(io, prefix, typed);
    if (o->kind == QN_OPT_TEXT && names_files(o->arg)) qn_io_print(io, ":files\n");
}

static const qn_opt *option_of(const qn_verb *verb, qn_str name)
{
    for (const qn_opt *o = verb->options; o->name; o++)
        if (qn_str_eq_z(name, o->name)) return o;
    return NULL;
}

static void offer_options(qn_io *io, const qn_verb *verb, qn_str typed)
{
    for (const qn_opt *o = verb->options; o->name; o++)
        if (o->help) offer(io, "--", qn_str_z(o->name), typed, o->help);
    offer(io, "--", QN_STR("help"), typed, "tell the options of this verb");
}

static void offer_argument(qn_io *io, const qn_verb *verb, qn_str typed)
{
    char words[128];
    if (verb == &qn_verb_help) {
        for (const qn_verb *const *v = qn_verbs; *v; v++)
            offer(io, "", qn_str_z((*v)->name), typed, (*v)->summary);
    } else if (verb == &qn_verb_get) {
        offer(io, "", QN_STR("starter"), typed, "a small model to begin with");
    } else if (verb == &qn_verb_ls) {
        offer_models(io, "", typed);
    } else if (names_files(verb->args)) {
        if (names_models(verb->args)) offer_models(io, "", typed);
        qn_io_print(io, ":files\n");
    } else if (strchr(verb->args, '|') && verb->args[0] >= 'a') {
        snprintf(words, sizeof words, "%s", verb->args);
        offer_words(io, "", words, typed, "");
    }
}

/* `typed` begins with "-": an option's name, or its name and value in one word. */
static void offer_dashed(qn_io *io, const qn_verb *verb, qn_str typed)
{
    char prefix[80];
    const qn_str text = qn_str_slice(typed, 2, typed.n);
    const size_t equals = qn_str_find(text, QN_STR("="), 0);
    const qn_opt *o = equals == SIZE_MAX ? NULL : option_of(verb, qn_str_slice(text, 0, equals));
    if (equals == SIZE_MAX) offer_options(io, verb, text);
    if (!o || o->kind == QN_OPT_FLAG) return;
    snprintf(prefix, sizeof prefix, "--%s=", o->name);
    offer_value(io, prefix, o, qn_str_slice(text, equals + 1, text.n));
}

/* v[0, n) are the words behind "quern"; the last one is being typed. */
static void complete(qn_io *io, int n, char *const *v)
{
    const qn_str typed = qn_str_z(n > 0 ? v[n - 1] : "");
    const qn_verb *verb = n > 1 ? qn_verb_find(v[0]) : NULL;
    const qn_opt *before = NULL; /* whose value is being typed */
    bool open = true;            /* until "--" */
    for (const qn_verb *const *each = qn_verbs; n <= 1 && *each; each++)
        offer(io, "", qn_str_z((*each)->name), typed, (*each)->summary);
    if (!verb) return;
    for (int i = 1; i < n - 1; i++) open = open && strcmp(v[i], "--") != 0;
    if (open && n > 2 && strncmp(v[n - 2], "--", 2) == 0)
        before = option_of(verb, qn_str_z(v[n - 2] + 2));
    if (before && before->kind != QN_OPT_FLAG)
        offer_value(io, "", before, typed);
    else if (open && typed.n && typed.p[0] == '-')
        offer_dashed(io, verb, typed);
    else
        offer_argument(io, verb, typed);
}

static qn_code completion(const void *opts, qn_args args, qn_io *io, qn_err *err)
{
    static const qn_named scripts[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    (void)opts;
    const bool words = strcmp(args.v[0], "words") == 0;
    if (words) complete(io, args.n - 1, args.v + 1);
    for (size_t i = 0; i < QN_LEN(scripts); i++) {
        if (words || strcmp(args.v[0], scripts[i].name) != 0) continue;
        if (args.n > 1)
            return qn_fail(err, QN_E_INVAL, "completion %s takes no more, got \"%s\"", args.v[0],
                           args.v[1]);
        qn_io_print(io, "%s", scripts[i].text);
        return qn_io_flush(io, err);
    }
    if (!words)
        return qn_fail(err, QN_E_INVAL, "shell \"%s\", expected bash, zsh or fish", args.v[0]);
    return qn_io_flush(io, err);
}

static const qn_opt no_options[] = {QN_OPT_END};

const qn_verb qn_verb_completion = {
    "completion",
    "bash|zsh|fish",
    "print a script that lets the shell complete verbs, options, models and files",
    "\n  source <(quern completion bash)     # in ~/.bashrc\n"
    "  source <(quern completion zsh)      # in ~/.zshrc, behind compinit\n"
    "  quern completion fish | source      # in ~/.config/fish/config.fish",
    no_options,
    NULL,
    0,
    1,
    MAX_WORDS,
    completion};
