# Completion of ptxrewrite for bash (and for zsh, after `autoload bashcompinit; bashcompinit`):
#   source cli/completion/ptxrewrite.bash
# Commands, options and passes are asked of the program itself, so this file never goes out of date.

_ptxrewrite_commands() {
  "$1" --help 2>/dev/null | sed -n '/^Subcommands:/,/^$/ s/^  \([a-z][a-z-]*\) .*/\1/p'
}

_ptxrewrite_options() {
  "$@" --help 2>/dev/null | grep -oE -- '(^|[ ,])--[a-z][a-z-]*' | tr -d ' ,' | sort -u
}

_ptxrewrite() {
  local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command='' word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ $word != -* ]]; then
      command=$word
      break
    fi
  done
  COMPREPLY=()
  if [[ -z $command ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_ptxrewrite_commands "$program") $(_ptxrewrite_options "$program")" -- "$current")
    return
  fi
  case $previous in
    -p | --passes)
      # A comma-separated list: the last name is completed, what stands before it is kept.
      local before=''
      [[ $current == *,* ]] && before=${current%,*},
      mapfile -t COMPREPLY < <(compgen -P "$before" -W "$("$program" passes 2>/dev/null | sed -n 's/^\([a-z][a-z0-9-]*\).*/\1/p')" -- "${current##*,}")
      return
      ;;
    --gpu)
      mapfile -t COMPREPLY < <(compgen -W "$("$program" machines 2>/dev/null | sed -n '2,$s/ .*//p' | tr '[:upper:]' '[:lower:]')" -- "${current##*,}"; compgen -f -X '!*.toml' -- "$current")
      return
      ;;
    --form)
      mapfile -t COMPREPLY < <(compgen -W 'legal annotated hardware' -- "$current")
      return
      ;;
  esac
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_ptxrewrite_options "$program" "$command")" -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -f -X '!*.ptx' -- "$current"; compgen -f -X '!*.toml' -- "$current"; compgen -d -S / -- "$current")
  fi
}

complete -o nospace -o filenames -F _ptxrewrite ptxrewrite 2>/dev/null
