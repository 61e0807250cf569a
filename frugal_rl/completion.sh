# Tab completion of frugal-rl for bash, and for zsh after `autoload -U bashcompinit && bashcompinit`.
# Commands are completed here; groups, choices and keys by Hydra, asked in the words of the command.
_frugal_rl() {
    local line="${COMP_LINE:0:COMP_POINT}"
    local last="${line##* }" command
    COMPREPLY=()
    read -r _ command _ <<< "$line"
    if [[ -z "$command" || "$line" == "${line%%[[:space:]]*} $command" ]]; then
        COMPREPLY=($(compgen -W "$(frugal-rl commands)" -- "$last"))
        _frugal_rl_whole
        return
    fi
    if [[ "$last" == -* ]]; then
        COMPREPLY=($(compgen -W "--help --json --quiet --config-dir --multirun" -- "$last"))
        _frugal_rl_whole
        return
    fi
    local words="$command.py${line#*"$command"}"
    local offered
    offered=$(COMP_LINE="$words" COMP_POINT=${#words} frugal-rl "$command" -sc query=bash 2>/dev/null)
    # the shell takes a word apart at "=", so only what stands behind the last one is replaced
    [[ "$COMP_WORDBREAKS" == *=* && "$last" == *=* ]] && offered="${offered//"${last%=*}="/}"
    COMPREPLY=($offered)
    _frugal_rl_whole
}
# The only word that fits ends with a blank, unless more belongs to it: a value, the rest of a key.
_frugal_rl_whole() {
    if (( ${#COMPREPLY[@]} == 1 )) && [[ "${COMPREPLY[0]}" != *[=./] ]]; then
        COMPREPLY=("${COMPREPLY[0]} ")
    fi
}
complete -o nospace -F _frugal_rl frugal-rl
