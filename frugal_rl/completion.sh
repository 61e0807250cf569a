# Tab completion of frugal-rl for bash, and for zsh after `autoload -U bashcompinit && bashcompinit`.
# Commands are completed here; groups, choices and keys by Hydra, asked in the words of the command.
_frugal_rl() {
    local line="${COMP_LINE:0:COMP_POINT}"
    local last="${line##* }" command
    COMPREPLY=()
    read -r _ command _ <<< "$line"
    if [[ -z "$command" || "$line" == "${line%%[[:space:]]*} $command" ]]; then
        COMPREPLY=($(compgen -W "$(frugal-rl commands)" -- "$last"))
        return
    fi
    local words="$command.py${line#*"$command"}"
    local offered
    offered=$(COMP_LINE="$words" COMP_POINT=${#words} frugal-rl "$command" -sc query=bash 2>/dev/null)
    # the shell takes a word apart at "=", so only what stands behind the last one is replaced
    [[ "$COMP_WORDBREAKS" == *=* && "$last" == *=* ]] && offered="${offered//"${last%=*}="/}"
    COMPREPLY=($offered)
}
complete -o nospace -F _frugal_rl frugal-rl
