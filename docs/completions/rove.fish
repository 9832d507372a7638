complete -c rove -l predict -d 'When to show what you type before the host has answered. The environment\'s MOSH_PREDICTION_DISPLAY counts too' -r -f -a "adaptive\t'On slow links'
always\t'On all links'
never\t'Not at all'
experimental\t'On all links, and at once'"
complete -c rove -l udp-port -d 'UDP port or range for the server to use; 0 lets its system choose [default: 60001:60999]' -r
complete -c rove -l server -d 'Server to run, a command line for the shell there: a rove, or anything that takes mosh-server\'s words' -r
complete -c rove -l bind-server -d 'Address the server listens on: where ssh came in, any, or this one' -r
complete -c rove -l ssh -d 'Program that runs a command on a host: COMMAND HOST LINE. One called ssh gets options too' -r
complete -c rove -l family -d 'Which of the host\'s addresses to use: inet, inet6, all, prefer-inet or prefer-inet6' -r -f -a "inet\t''
inet6\t''
all\t''
prefer-inet\t''
prefer-inet6\t''"
complete -c rove -s p -d 'TCP port of ssh on the host' -r
complete -c rove -s l -d 'User to log in as' -r -f -a "(__fish_complete_users)"
complete -c rove -s i -d 'File with the private key' -r -F
complete -c rove -s J -d 'Hosts to jump through' -r -f -a "(__fish_print_hostnames)"
complete -c rove -s F -d 'Configuration file of ssh' -r -F
complete -c rove -s o -d 'Any option of ssh\'s configuration' -r
complete -c rove -s a -d 'The same as --predict=always'
complete -c rove -s n -d 'The same as --predict=never'
complete -c rove -l predict-overwrite -d 'Guess that typing overwrites what is right of the cursor instead of pushing it on'
complete -c rove -l no-init -d 'Stay on the terminal\'s main screen, also with mosh-server, whose sessions else take the alternate one'
complete -c rove -l init -d 'Take the terminal\'s alternate screen for the whole session'
complete -c rove -l no-clipboard -d 'Keep programs on the host from writing your clipboard. (None ever reads it.)'
complete -c rove -s v -d 'Tell every step with its time; -vv makes ssh tell too, -vvv more'
complete -c rove -s q -d 'Tell only of failures; ssh is told too'
complete -c rove -l local -d 'Run the server on this machine, without ssh'
complete -c rove -l native -d 'Refuse to fall back to mosh\'s protocol: the host must have a rove that speaks the native one'
complete -c rove -l mosh-wire -d 'Speak mosh\'s protocol with a rove server too, as older ones do'
complete -c rove -s 4 -d 'Use IPv4 only'
complete -c rove -s 6 -d 'Use IPv6 only'
complete -c rove -s t -d 'Taken for the sake of habit: a session always has a terminal'
complete -c rove -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rove -s V -l version -d 'Print version'

complete -c rove -n "test (count (commandline -opc)) -eq 1" -f -a "(__fish_print_hostnames)"
