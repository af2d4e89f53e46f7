# Completion of `clebsch` in fish: commands, the options that the help of a command lists, and names of models.
function __clebsch_options
    clebsch (commandline -opc)[2..] --help 2>/dev/null | string replace -rf '^(?:  -., |      )(--[a-z0-9-]+)\S*\s*(.*)' '$1\t$2'
end
complete -c clebsch -n __fish_use_subcommand -f -a "(clebsch help 2>/dev/null | string replace -rf '^  ([a-z]+)  +(.*)' '\$1\t\$2')"
complete -c clebsch -n 'not __fish_use_subcommand; and string match -q -- "-*" (commandline -ct)' -f -a '(__clebsch_options)'
complete -c clebsch -n 'contains -- (commandline -opc)[-1] -m --model fetch info certify' -a "(clebsch models 2>/dev/null | string replace -rf '^([a-z0-9_-]+)  .*' '\$1')"
