# Completion of ptxrewrite for fish: source it, or put it into ~/.config/fish/completions. Commands, options and passes
# are asked of the program itself, so this file never goes out of date.

function __ptxrewrite_command
    for word in (commandline -opc)[2..-1]
        string match -q -- '-*' $word; or begin
            echo $word
            return
        end
    end
    return 1
end

function __ptxrewrite_commands
    ptxrewrite --help 2>/dev/null | sed -n '/^Subcommands:/,/^$/ s/^  \([a-z][a-z-]*\)  *\(.*\)/\1\t\2/p'
end

function __ptxrewrite_options
    set -l command (__ptxrewrite_command); or return
    ptxrewrite $command --help 2>/dev/null | grep -oE -- '(^|[ ,])--[a-z][a-z-]*' | tr -d ' ,' | sort -u
end

# A comma-separated list: what stands before the last name is kept.
function __ptxrewrite_list
    set -l before (string match -r '^.*,' -- (commandline -ct))
    for name in $argv
        echo "$before"$name
    end
end

function __ptxrewrite_after
    contains -- (commandline -opc)[-1] $argv
end

complete -c ptxrewrite -n 'not __ptxrewrite_command >/dev/null' -f -a '(__ptxrewrite_commands)'
complete -c ptxrewrite -n '__ptxrewrite_after -p --passes' -f -a "(__ptxrewrite_list (ptxrewrite passes 2>/dev/null | string match -r '^[a-z][a-z0-9-]*'))"
complete -c ptxrewrite -n '__ptxrewrite_after --gpu' -a "(__ptxrewrite_list (ptxrewrite machines 2>/dev/null | sed -n '2,\$s/ .*//p' | string lower))"
complete -c ptxrewrite -n '__ptxrewrite_after --form' -f -a 'legal annotated hardware'
complete -c ptxrewrite -n '__ptxrewrite_command >/dev/null; and string match -q -- "-*" (commandline -ct)' -f -a '(__ptxrewrite_options)'
