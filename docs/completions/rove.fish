# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_rove_global_optspecs
    string join \n predict= a n predict-overwrite obscure= obscure-slot= no-init init history= no-clipboard way= no-fallback metered no-install v q L= R= D= g public-remote A N W= give-up= udp-port= server= bind-server= local native mosh-wire ssh= family= 4 6 p= l= i= J= F= o= t C no-ssh-pty experimental-remote-ip= h/help V/version
end

function __fish_rove_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_rove_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_rove_using_subcommand
    set -l cmd (__fish_rove_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c rove -n "__fish_rove_needs_command" -l predict -d 'When to show what you type before the host has answered. The environment\'s MOSH_PREDICTION_DISPLAY counts too' -r -f -a "adaptive\t'On slow links'
always\t'On all links'
never\t'Not at all'
experimental\t'On all links, motions of the cursor at once'"
complete -c rove -n "__fish_rove_needs_command" -l obscure -d 'Hide the times and the number of keys from a listener on the network: of keys on a line that does not echo (secrets, the default), of all (always; --obscure alone is that), or of none (never)' -r -f -a "secrets\t'The keys of a line that does not echo go with its Enter'
always\t'The same, and all other keys go in slots'
never\t'Each key goes at once'"
complete -c rove -n "__fish_rove_needs_command" -l obscure-slot -d 'With --obscure: the milliseconds between two packets while you type, from 20 to 200 [default: 55, with --metered 100]' -r
complete -c rove -n "__fish_rove_needs_command" -l history -d 'How many lines that scrolled by unseen your terminal gets at most. 0: none' -r
complete -c rove -n "__fish_rove_needs_command" -l way -d 'By which way it goes on once ssh has started the server: UDP, and ssh\'s own connection until UDP answers and where it does not; or one of both alone' -r -f -a "auto\t'UDP, and ssh where UDP does not answer'
udp\t'UDP alone'
ssh\t'ssh alone'"
complete -c rove -n "__fish_rove_needs_command" -s L -d 'Listen here, and go on from the host: [ADDRESS:]PORT:HOST:PORT. The path of a Unix socket may stand for either half' -r
complete -c rove -n "__fish_rove_needs_command" -s R -d 'Listen on the host, and go on from here; with FROM alone, to where SOCKS says' -r
complete -c rove -n "__fish_rove_needs_command" -s D -d 'Listen here for SOCKS, and go on from the host: [ADDRESS:]PORT' -r
complete -c rove -n "__fish_rove_needs_command" -s W -d 'Make standard input and output a connection of the host\'s to this port' -r
complete -c rove -n "__fish_rove_needs_command" -l give-up -d 'Without a shell: end when the host has been silent for this many seconds, or with m, h or d after the number minutes, hours or days [default: 12h for a command, 72h without]. Less than 20 s counts as 20 s' -r
complete -c rove -n "__fish_rove_needs_command" -l udp-port -d 'UDP port or range for the server to use; 0 lets its system choose [default: 60001:60999]' -r
complete -c rove -n "__fish_rove_needs_command" -l server -d 'Server to run, a command line for the shell there: a rove, or anything that takes mosh-server\'s words' -r
complete -c rove -n "__fish_rove_needs_command" -l bind-server -d 'Address the server listens on: where ssh came in, any, or this one' -r
complete -c rove -n "__fish_rove_needs_command" -l ssh -d 'Program that runs a command on a host: COMMAND HOST LINE. One called ssh gets options too' -r
complete -c rove -n "__fish_rove_needs_command" -l family -d 'Which of the host\'s addresses to use: inet, inet6, all, prefer-inet or prefer-inet6' -r -f -a "inet\t''
inet6\t''
all\t''
prefer-inet\t''
prefer-inet6\t''"
complete -c rove -n "__fish_rove_needs_command" -s p -d 'TCP port of ssh on the host' -r
complete -c rove -n "__fish_rove_needs_command" -s l -d 'User to log in as' -r -f -a "(__fish_complete_users)"
complete -c rove -n "__fish_rove_needs_command" -s i -d 'File with the private key' -r -F
complete -c rove -n "__fish_rove_needs_command" -s J -d 'Hosts to jump through' -r -f -a "(__fish_print_hostnames)"
complete -c rove -n "__fish_rove_needs_command" -s F -d 'Configuration file of ssh' -r -F
complete -c rove -n "__fish_rove_needs_command" -s o -d 'Any option of ssh\'s configuration' -r
complete -c rove -n "__fish_rove_needs_command" -l experimental-remote-ip -r -f -a "local\t''
remote\t''
proxy\t''"
complete -c rove -n "__fish_rove_needs_command" -s a -d 'The same as --predict=always'
complete -c rove -n "__fish_rove_needs_command" -s n -d 'The same as --predict=never'
complete -c rove -n "__fish_rove_needs_command" -l predict-overwrite -d 'Guess that typing overwrites what is right of the cursor instead of pushing it on'
complete -c rove -n "__fish_rove_needs_command" -l no-init -d 'Stay on the terminal\'s main screen, also with mosh-server, whose sessions else take the alternate one'
complete -c rove -n "__fish_rove_needs_command" -l init -d 'Take the terminal\'s alternate screen for the whole session'
complete -c rove -n "__fish_rove_needs_command" -l no-clipboard -d 'Keep programs on the host from writing your clipboard. (None ever reads it.)'
complete -c rove -n "__fish_rove_needs_command" -l no-fallback -d 'Do not run ssh again when the host no longer answers'
complete -c rove -n "__fish_rove_needs_command" -l metered -d 'Where octets are paid for: with a rove there, neither end says a thing so often in case packets are lost'
complete -c rove -n "__fish_rove_needs_command" -l no-install -d 'Never ask whether to copy rove to a host that has no server'
complete -c rove -n "__fish_rove_needs_command" -s v -d 'Tell every step with its time; -vv makes ssh tell too, -vvv more'
complete -c rove -n "__fish_rove_needs_command" -s q -d 'Tell only of failures; ssh is told too'
complete -c rove -n "__fish_rove_needs_command" -s g -d 'Let other machines connect to ports of -L and -D that name no address'
complete -c rove -n "__fish_rove_needs_command" -l public-remote -d 'Let -R listen on other addresses of the host than loopback'
complete -c rove -n "__fish_rove_needs_command" -s A -d 'Let programs on the host use your agent, to list keys and to sign'
complete -c rove -n "__fish_rove_needs_command" -s N -d 'Run nothing on the host: only forward'
complete -c rove -n "__fish_rove_needs_command" -l local -d 'Run the server on this machine, without ssh'
complete -c rove -n "__fish_rove_needs_command" -l native -d 'Refuse to fall back to mosh\'s protocol: the host must have a rove that speaks the native one'
complete -c rove -n "__fish_rove_needs_command" -l mosh-wire -d 'Speak mosh\'s protocol with a rove server too, as older ones do'
complete -c rove -n "__fish_rove_needs_command" -s 4 -d 'Use IPv4 only'
complete -c rove -n "__fish_rove_needs_command" -s 6 -d 'Use IPv6 only'
complete -c rove -n "__fish_rove_needs_command" -s t -d 'Taken for the sake of habit: a session always has a terminal'
complete -c rove -n "__fish_rove_needs_command" -s C -d 'Words of ssh\'s and mosh\'s that say what is so anyway: octets are compressed, ssh gets no terminal, and all ways to the host\'s address are tried'
complete -c rove -n "__fish_rove_needs_command" -l no-ssh-pty
complete -c rove -n "__fish_rove_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rove -n "__fish_rove_needs_command" -s V -l version -d 'Print version'
complete -c rove -n "__fish_rove_needs_command" -a "cp" -d 'Copy files between this machine and others'
complete -c rove -n "__fish_rove_needs_command" -a "doctor" -d 'Look at all that a session needs, here and on a host, and say what to do about what is amiss'
complete -c rove -n "__fish_rove_needs_command" -a "exec" -d 'Run a command on a host as ssh does, over streams that survive sleep, loss and new addresses'
complete -c rove -n "__fish_rove_needs_command" -a "install" -d 'Copy a rove to a host, for its sessions. It needs no root there, and asks nothing'
complete -c rove -n "__fish_rove_needs_command" -a "ls" -d 'List your sessions on a host, or on this machine'
complete -c rove -n "__fish_rove_needs_command" -a "attach" -d 'Go back to a session on a host, or join others in it'
complete -c rove -n "__fish_rove_needs_command" -a "new" -d 'Begin a session that goes on when you leave it'
complete -c rove -n "__fish_rove_needs_command" -a "kill" -d 'End a session on a host: its program is hung up on, and killed if it has not ended after 5 s'
complete -c rove -n "__fish_rove_needs_command" -a "help" -d 'Show the manual of rove or of one of its commands'
complete -c rove -n "__fish_rove_using_subcommand cp" -l links -d 'Which symbolic links in directories are made where they go: those that stay inside the directory that is copied, or all. Others are told as failures' -r -f -a "inside\t'Those that cannot lead out of the directory that is copied'
all\t'All, also absolute ones and those that climb above it'"
complete -c rove -n "__fish_rove_using_subcommand cp" -l limit -d 'Octets a second at most, with K, M or G for thousands, millions or milliards' -r
complete -c rove -n "__fish_rove_using_subcommand cp" -s l -d 'The same as scp has it, in units of 1024 bits a second' -r
complete -c rove -n "__fish_rove_using_subcommand cp" -l give-up -d 'End when a host has been silent for this many seconds, or with m, h or d after the number minutes, hours or days [default: 12h]. Less than 20 s counts as 20 s' -r
complete -c rove -n "__fish_rove_using_subcommand cp" -s c -d 'For ssh, and so for the login alone' -r
complete -c rove -n "__fish_rove_using_subcommand cp" -l way -d 'By which way it goes on once ssh has started the server: UDP, and ssh\'s own connection until UDP answers and where it does not; or one of both alone' -r -f -a "auto\t'UDP, and ssh where UDP does not answer'
udp\t'UDP alone'
ssh\t'ssh alone'"
complete -c rove -n "__fish_rove_using_subcommand cp" -l udp-port -d 'UDP port or range for the server to use; 0 lets its system choose [default: 60001:60999]' -r
complete -c rove -n "__fish_rove_using_subcommand cp" -l server -d 'Server to run, a command line for the shell there: a rove, or anything that takes mosh-server\'s words' -r
complete -c rove -n "__fish_rove_using_subcommand cp" -l bind-server -d 'Address the server listens on: where ssh came in, any, or this one' -r
complete -c rove -n "__fish_rove_using_subcommand cp" -l family -d 'Which of the host\'s addresses to use: inet, inet6, all, prefer-inet or prefer-inet6' -r -f -a "inet\t''
inet6\t''
all\t''
prefer-inet\t''
prefer-inet6\t''"
complete -c rove -n "__fish_rove_using_subcommand cp" -s i -d 'File with the private key' -r -F
complete -c rove -n "__fish_rove_using_subcommand cp" -s J -d 'Hosts to jump through' -r -f -a "(__fish_print_hostnames)"
complete -c rove -n "__fish_rove_using_subcommand cp" -s F -d 'Configuration file of ssh' -r -F
complete -c rove -n "__fish_rove_using_subcommand cp" -s o -d 'Any option of ssh\'s configuration' -r
complete -c rove -n "__fish_rove_using_subcommand cp" -s P -d 'TCP port of ssh on the host' -r
complete -c rove -n "__fish_rove_using_subcommand cp" -l user -d 'User to log in as' -r -f -a "(__fish_complete_users)"
complete -c rove -n "__fish_rove_using_subcommand cp" -s S -l ssh -d 'Program that runs a command on a host: COMMAND HOST LINE. One called ssh gets options too' -r
complete -c rove -n "__fish_rove_using_subcommand cp" -s r -d 'Directories too, with all that is in them; symbolic links in them are copied as links'
complete -c rove -n "__fish_rove_using_subcommand cp" -s p -d 'Keep the times and permissions of files and directories. (Without it new ones get the permissions that the umask there lets through, and those that were there keep their own.)'
complete -c rove -n "__fish_rove_using_subcommand cp" -l json -d 'Tell progress, failures and the sum on standard output, one JSON object a line'
complete -c rove -n "__fish_rove_using_subcommand cp" -s B -d 'Ask nothing: ssh fails where it would ask for a password'
complete -c rove -n "__fish_rove_using_subcommand cp" -s C -d 'More of scp\'s words, which say what is so anyway: compressed when it helps, through this machine, and only what was asked for'
complete -c rove -n "__fish_rove_using_subcommand cp" -s 3
complete -c rove -n "__fish_rove_using_subcommand cp" -s T
complete -c rove -n "__fish_rove_using_subcommand cp" -s O
complete -c rove -n "__fish_rove_using_subcommand cp" -s s
complete -c rove -n "__fish_rove_using_subcommand cp" -s v -d 'Tell every step with its time; -vv makes ssh tell too, -vvv more'
complete -c rove -n "__fish_rove_using_subcommand cp" -s q -d 'Tell only of failures; ssh is told too'
complete -c rove -n "__fish_rove_using_subcommand cp" -l local -d 'Run the server on this machine, without ssh'
complete -c rove -n "__fish_rove_using_subcommand cp" -s 4 -d 'Use IPv4 only'
complete -c rove -n "__fish_rove_using_subcommand cp" -s 6 -d 'Use IPv6 only'
complete -c rove -n "__fish_rove_using_subcommand cp" -s t -d 'Taken for the sake of habit: a session always has a terminal'
complete -c rove -n "__fish_rove_using_subcommand cp" -l mosh-wire -d 'Speak mosh\'s protocol with a rove server too, as older ones do'
complete -c rove -n "__fish_rove_using_subcommand cp" -l native -d 'Refuse to fall back to mosh\'s protocol: the host must have a rove that speaks the native one'
complete -c rove -n "__fish_rove_using_subcommand cp" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rove -n "__fish_rove_using_subcommand doctor" -l udp-port -d 'UDP port or range for the server to use; 0 lets its system choose [default: 60001:60999]' -r
complete -c rove -n "__fish_rove_using_subcommand doctor" -l server -d 'Server to run, a command line for the shell there: a rove, or anything that takes mosh-server\'s words' -r
complete -c rove -n "__fish_rove_using_subcommand doctor" -l bind-server -d 'Address the server listens on: where ssh came in, any, or this one' -r
complete -c rove -n "__fish_rove_using_subcommand doctor" -l ssh -d 'Program that runs a command on a host: COMMAND HOST LINE. One called ssh gets options too' -r
complete -c rove -n "__fish_rove_using_subcommand doctor" -l family -d 'Which of the host\'s addresses to use: inet, inet6, all, prefer-inet or prefer-inet6' -r -f -a "inet\t''
inet6\t''
all\t''
prefer-inet\t''
prefer-inet6\t''"
complete -c rove -n "__fish_rove_using_subcommand doctor" -s p -d 'TCP port of ssh on the host' -r
complete -c rove -n "__fish_rove_using_subcommand doctor" -s l -d 'User to log in as' -r -f -a "(__fish_complete_users)"
complete -c rove -n "__fish_rove_using_subcommand doctor" -s i -d 'File with the private key' -r -F
complete -c rove -n "__fish_rove_using_subcommand doctor" -s J -d 'Hosts to jump through' -r -f -a "(__fish_print_hostnames)"
complete -c rove -n "__fish_rove_using_subcommand doctor" -s F -d 'Configuration file of ssh' -r -F
complete -c rove -n "__fish_rove_using_subcommand doctor" -s o -d 'Any option of ssh\'s configuration' -r
complete -c rove -n "__fish_rove_using_subcommand doctor" -l json -d 'Print it all at the end, for programs'
complete -c rove -n "__fish_rove_using_subcommand doctor" -s v -d 'Tell every step with its time; -vv makes ssh tell too, -vvv more'
complete -c rove -n "__fish_rove_using_subcommand doctor" -s q -d 'Tell only of failures; ssh is told too'
complete -c rove -n "__fish_rove_using_subcommand doctor" -l local -d 'Run the server on this machine, without ssh'
complete -c rove -n "__fish_rove_using_subcommand doctor" -l native -d 'Refuse to fall back to mosh\'s protocol: the host must have a rove that speaks the native one'
complete -c rove -n "__fish_rove_using_subcommand doctor" -l mosh-wire -d 'Speak mosh\'s protocol with a rove server too, as older ones do'
complete -c rove -n "__fish_rove_using_subcommand doctor" -s 4 -d 'Use IPv4 only'
complete -c rove -n "__fish_rove_using_subcommand doctor" -s 6 -d 'Use IPv6 only'
complete -c rove -n "__fish_rove_using_subcommand doctor" -s t -d 'Taken for the sake of habit: a session always has a terminal'
complete -c rove -n "__fish_rove_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rove -n "__fish_rove_using_subcommand doctor" -s V -l version -d 'Print version'
complete -c rove -n "__fish_rove_using_subcommand exec" -s e -d 'The key that begins a command to rove on a terminal; none for no key' -r
complete -c rove -n "__fish_rove_using_subcommand exec" -s L -d 'Listen here, and go on from the host: [ADDRESS:]PORT:HOST:PORT. The path of a Unix socket may stand for either half' -r
complete -c rove -n "__fish_rove_using_subcommand exec" -s R -d 'Listen on the host, and go on from here; with FROM alone, to where SOCKS says' -r
complete -c rove -n "__fish_rove_using_subcommand exec" -s D -d 'Listen here for SOCKS, and go on from the host: [ADDRESS:]PORT' -r
complete -c rove -n "__fish_rove_using_subcommand exec" -s W -d 'Make standard input and output a connection of the host\'s to this port' -r
complete -c rove -n "__fish_rove_using_subcommand exec" -l give-up -d 'Without a shell: end when the host has been silent for this many seconds, or with m, h or d after the number minutes, hours or days [default: 12h for a command, 72h without]. Less than 20 s counts as 20 s' -r
complete -c rove -n "__fish_rove_using_subcommand exec" -l way -d 'By which way it goes on once ssh has started the server: UDP, and ssh\'s own connection until UDP answers and where it does not; or one of both alone' -r -f -a "auto\t'UDP, and ssh where UDP does not answer'
udp\t'UDP alone'
ssh\t'ssh alone'"
complete -c rove -n "__fish_rove_using_subcommand exec" -l udp-port -d 'UDP port or range for the server to use; 0 lets its system choose [default: 60001:60999]' -r
complete -c rove -n "__fish_rove_using_subcommand exec" -l server -d 'Server to run, a command line for the shell there: a rove, or anything that takes mosh-server\'s words' -r
complete -c rove -n "__fish_rove_using_subcommand exec" -l bind-server -d 'Address the server listens on: where ssh came in, any, or this one' -r
complete -c rove -n "__fish_rove_using_subcommand exec" -l ssh -d 'Program that runs a command on a host: COMMAND HOST LINE. One called ssh gets options too' -r
complete -c rove -n "__fish_rove_using_subcommand exec" -l family -d 'Which of the host\'s addresses to use: inet, inet6, all, prefer-inet or prefer-inet6' -r -f -a "inet\t''
inet6\t''
all\t''
prefer-inet\t''
prefer-inet6\t''"
complete -c rove -n "__fish_rove_using_subcommand exec" -s p -d 'TCP port of ssh on the host' -r
complete -c rove -n "__fish_rove_using_subcommand exec" -s l -d 'User to log in as' -r -f -a "(__fish_complete_users)"
complete -c rove -n "__fish_rove_using_subcommand exec" -s i -d 'File with the private key' -r -F
complete -c rove -n "__fish_rove_using_subcommand exec" -s J -d 'Hosts to jump through' -r -f -a "(__fish_print_hostnames)"
complete -c rove -n "__fish_rove_using_subcommand exec" -s F -d 'Configuration file of ssh' -r -F
complete -c rove -n "__fish_rove_using_subcommand exec" -s o -d 'Any option of ssh\'s configuration' -r
complete -c rove -n "__fish_rove_using_subcommand exec" -s c -d 'More of ssh\'s words, for ssh' -r
complete -c rove -n "__fish_rove_using_subcommand exec" -s m -r
complete -c rove -n "__fish_rove_using_subcommand exec" -s b -r
complete -c rove -n "__fish_rove_using_subcommand exec" -s B -r
complete -c rove -n "__fish_rove_using_subcommand exec" -s I -r
complete -c rove -n "__fish_rove_using_subcommand exec" -s S -r
complete -c rove -n "__fish_rove_using_subcommand exec" -s a -d 'Let no program on the host use your agent'
complete -c rove -n "__fish_rove_using_subcommand exec" -s T -d 'Run the command without a terminal. With -t it has one if standard input is one, with -tt always'
complete -c rove -n "__fish_rove_using_subcommand exec" -s s -d 'The command is the name of a subsystem, for programs like sftp and sshfs'
complete -c rove -n "__fish_rove_using_subcommand exec" -s n -d 'Give it no input'
complete -c rove -n "__fish_rove_using_subcommand exec" -s G -d 'Print ssh\'s configuration for the host and end, as `ssh -G` does'
complete -c rove -n "__fish_rove_using_subcommand exec" -s v -d 'Tell every step with its time; -vv makes ssh tell too, -vvv more'
complete -c rove -n "__fish_rove_using_subcommand exec" -s q -d 'Tell only of failures; ssh is told too'
complete -c rove -n "__fish_rove_using_subcommand exec" -s g -d 'Let other machines connect to ports of -L and -D that name no address'
complete -c rove -n "__fish_rove_using_subcommand exec" -l public-remote -d 'Let -R listen on other addresses of the host than loopback'
complete -c rove -n "__fish_rove_using_subcommand exec" -s A -d 'Let programs on the host use your agent, to list keys and to sign'
complete -c rove -n "__fish_rove_using_subcommand exec" -s N -d 'Run nothing on the host: only forward'
complete -c rove -n "__fish_rove_using_subcommand exec" -l local -d 'Run the server on this machine, without ssh'
complete -c rove -n "__fish_rove_using_subcommand exec" -l native -d 'Refuse to fall back to mosh\'s protocol: the host must have a rove that speaks the native one'
complete -c rove -n "__fish_rove_using_subcommand exec" -l mosh-wire -d 'Speak mosh\'s protocol with a rove server too, as older ones do'
complete -c rove -n "__fish_rove_using_subcommand exec" -s 4 -d 'Use IPv4 only'
complete -c rove -n "__fish_rove_using_subcommand exec" -s 6 -d 'Use IPv6 only'
complete -c rove -n "__fish_rove_using_subcommand exec" -s t -d 'Taken for the sake of habit: a session always has a terminal'
complete -c rove -n "__fish_rove_using_subcommand exec" -s C
complete -c rove -n "__fish_rove_using_subcommand exec" -s K
complete -c rove -n "__fish_rove_using_subcommand exec" -s k
complete -c rove -n "__fish_rove_using_subcommand exec" -s 2 -d 'The only protocol of ssh\'s there is: sshfs asks for it'
complete -c rove -n "__fish_rove_using_subcommand exec" -s x -d 'Nothing of the window system is forwarded anyway'
complete -c rove -n "__fish_rove_using_subcommand exec" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rove -n "__fish_rove_using_subcommand exec" -s V -l version -d 'Print version'
complete -c rove -n "__fish_rove_using_subcommand install" -l from -d 'The program to copy, instead of this one or the package\'s for the host\'s machine' -r -F
complete -c rove -n "__fish_rove_using_subcommand install" -l to -d 'The directory for programs there, if they may not run below the home; ~/.local/bin/rove leads to it' -r
complete -c rove -n "__fish_rove_using_subcommand install" -l ssh -d 'Program that runs a command on a host: COMMAND HOST LINE. One called ssh gets options too' -r
complete -c rove -n "__fish_rove_using_subcommand install" -l family -d 'Which of the host\'s addresses to use: inet, inet6, all, prefer-inet or prefer-inet6' -r -f -a "inet\t''
inet6\t''
all\t''
prefer-inet\t''
prefer-inet6\t''"
complete -c rove -n "__fish_rove_using_subcommand install" -s p -d 'TCP port of ssh on the host' -r
complete -c rove -n "__fish_rove_using_subcommand install" -s l -d 'User to log in as' -r -f -a "(__fish_complete_users)"
complete -c rove -n "__fish_rove_using_subcommand install" -s i -d 'File with the private key' -r -F
complete -c rove -n "__fish_rove_using_subcommand install" -s J -d 'Hosts to jump through' -r -f -a "(__fish_print_hostnames)"
complete -c rove -n "__fish_rove_using_subcommand install" -s F -d 'Configuration file of ssh' -r -F
complete -c rove -n "__fish_rove_using_subcommand install" -s o -d 'Any option of ssh\'s configuration' -r
complete -c rove -n "__fish_rove_using_subcommand install" -l force -d 'Replace a rove there that is newer, or that somebody else put there'
complete -c rove -n "__fish_rove_using_subcommand install" -l print-sum -d 'What a copy says of itself where no other program makes such sums'
complete -c rove -n "__fish_rove_using_subcommand install" -s v -d 'Tell every step with its time; -vv makes ssh tell too, -vvv more'
complete -c rove -n "__fish_rove_using_subcommand install" -s q -d 'Tell only of failures; ssh is told too'
complete -c rove -n "__fish_rove_using_subcommand install" -s 4 -d 'Use IPv4 only'
complete -c rove -n "__fish_rove_using_subcommand install" -s 6 -d 'Use IPv6 only'
complete -c rove -n "__fish_rove_using_subcommand install" -s t -d 'Taken for the sake of habit: a session always has a terminal'
complete -c rove -n "__fish_rove_using_subcommand install" -s h -l help -d 'Print help'
complete -c rove -n "__fish_rove_using_subcommand install" -s V -l version -d 'Print version'
complete -c rove -n "__fish_rove_using_subcommand ls" -l udp-port -d 'UDP port or range for the server to use; 0 lets its system choose [default: 60001:60999]' -r
complete -c rove -n "__fish_rove_using_subcommand ls" -l server -d 'Server to run, a command line for the shell there: a rove, or anything that takes mosh-server\'s words' -r
complete -c rove -n "__fish_rove_using_subcommand ls" -l bind-server -d 'Address the server listens on: where ssh came in, any, or this one' -r
complete -c rove -n "__fish_rove_using_subcommand ls" -l ssh -d 'Program that runs a command on a host: COMMAND HOST LINE. One called ssh gets options too' -r
complete -c rove -n "__fish_rove_using_subcommand ls" -l family -d 'Which of the host\'s addresses to use: inet, inet6, all, prefer-inet or prefer-inet6' -r -f -a "inet\t''
inet6\t''
all\t''
prefer-inet\t''
prefer-inet6\t''"
complete -c rove -n "__fish_rove_using_subcommand ls" -s p -d 'TCP port of ssh on the host' -r
complete -c rove -n "__fish_rove_using_subcommand ls" -s i -d 'File with the private key' -r -F
complete -c rove -n "__fish_rove_using_subcommand ls" -s J -d 'Hosts to jump through' -r -f -a "(__fish_print_hostnames)"
complete -c rove -n "__fish_rove_using_subcommand ls" -s F -d 'Configuration file of ssh' -r -F
complete -c rove -n "__fish_rove_using_subcommand ls" -s o -d 'Any option of ssh\'s configuration' -r
complete -c rove -n "__fish_rove_using_subcommand ls" -l user -d 'User to log in as' -r -f -a "(__fish_complete_users)"
complete -c rove -n "__fish_rove_using_subcommand ls" -s l -d 'Tell the whole command line of what runs, and the session\'s id'
complete -c rove -n "__fish_rove_using_subcommand ls" -l json -d 'The same for programs: one JSON object, times in seconds'
complete -c rove -n "__fish_rove_using_subcommand ls" -s v -d 'Tell every step with its time; -vv makes ssh tell too, -vvv more'
complete -c rove -n "__fish_rove_using_subcommand ls" -s q -d 'Tell only of failures; ssh is told too'
complete -c rove -n "__fish_rove_using_subcommand ls" -l local -d 'Run the server on this machine, without ssh'
complete -c rove -n "__fish_rove_using_subcommand ls" -l native -d 'Refuse to fall back to mosh\'s protocol: the host must have a rove that speaks the native one'
complete -c rove -n "__fish_rove_using_subcommand ls" -l mosh-wire -d 'Speak mosh\'s protocol with a rove server too, as older ones do'
complete -c rove -n "__fish_rove_using_subcommand ls" -s 4 -d 'Use IPv4 only'
complete -c rove -n "__fish_rove_using_subcommand ls" -s 6 -d 'Use IPv6 only'
complete -c rove -n "__fish_rove_using_subcommand ls" -s t -d 'Taken for the sake of habit: a session always has a terminal'
complete -c rove -n "__fish_rove_using_subcommand ls" -s h -l help -d 'Print help'
complete -c rove -n "__fish_rove_using_subcommand ls" -s V -l version -d 'Print version'
complete -c rove -n "__fish_rove_using_subcommand attach" -l fill -d 'How many of the lines above the screen your terminal gets at most. 0 where it has them already [default: all]' -r
complete -c rove -n "__fish_rove_using_subcommand attach" -l size -d 'How the terminal\'s size is chosen from now on: latest (of the window that was typed in last), smallest, largest, or a size such as 80x24' -r
complete -c rove -n "__fish_rove_using_subcommand attach" -l predict -d 'When to show what you type before the host has answered. The environment\'s MOSH_PREDICTION_DISPLAY counts too' -r -f -a "adaptive\t'On slow links'
always\t'On all links'
never\t'Not at all'
experimental\t'On all links, motions of the cursor at once'"
complete -c rove -n "__fish_rove_using_subcommand attach" -l obscure -d 'Hide the times and the number of keys from a listener on the network: of keys on a line that does not echo (secrets, the default), of all (always; --obscure alone is that), or of none (never)' -r -f -a "secrets\t'The keys of a line that does not echo go with its Enter'
always\t'The same, and all other keys go in slots'
never\t'Each key goes at once'"
complete -c rove -n "__fish_rove_using_subcommand attach" -l obscure-slot -d 'With --obscure: the milliseconds between two packets while you type, from 20 to 200 [default: 55, with --metered 100]' -r
complete -c rove -n "__fish_rove_using_subcommand attach" -l history -d 'How many lines that scrolled by unseen your terminal gets at most. 0: none' -r
complete -c rove -n "__fish_rove_using_subcommand attach" -l way -d 'By which way it goes on once ssh has started the server: UDP, and ssh\'s own connection until UDP answers and where it does not; or one of both alone' -r -f -a "auto\t'UDP, and ssh where UDP does not answer'
udp\t'UDP alone'
ssh\t'ssh alone'"
complete -c rove -n "__fish_rove_using_subcommand attach" -s L -d 'Listen here, and go on from the host: [ADDRESS:]PORT:HOST:PORT. The path of a Unix socket may stand for either half' -r
complete -c rove -n "__fish_rove_using_subcommand attach" -s R -d 'Listen on the host, and go on from here; with FROM alone, to where SOCKS says' -r
complete -c rove -n "__fish_rove_using_subcommand attach" -s D -d 'Listen here for SOCKS, and go on from the host: [ADDRESS:]PORT' -r
complete -c rove -n "__fish_rove_using_subcommand attach" -s W -d 'Make standard input and output a connection of the host\'s to this port' -r
complete -c rove -n "__fish_rove_using_subcommand attach" -l give-up -d 'Without a shell: end when the host has been silent for this many seconds, or with m, h or d after the number minutes, hours or days [default: 12h for a command, 72h without]. Less than 20 s counts as 20 s' -r
complete -c rove -n "__fish_rove_using_subcommand attach" -l udp-port -d 'UDP port or range for the server to use; 0 lets its system choose [default: 60001:60999]' -r
complete -c rove -n "__fish_rove_using_subcommand attach" -l server -d 'Server to run, a command line for the shell there: a rove, or anything that takes mosh-server\'s words' -r
complete -c rove -n "__fish_rove_using_subcommand attach" -l bind-server -d 'Address the server listens on: where ssh came in, any, or this one' -r
complete -c rove -n "__fish_rove_using_subcommand attach" -l ssh -d 'Program that runs a command on a host: COMMAND HOST LINE. One called ssh gets options too' -r
complete -c rove -n "__fish_rove_using_subcommand attach" -l family -d 'Which of the host\'s addresses to use: inet, inet6, all, prefer-inet or prefer-inet6' -r -f -a "inet\t''
inet6\t''
all\t''
prefer-inet\t''
prefer-inet6\t''"
complete -c rove -n "__fish_rove_using_subcommand attach" -s p -d 'TCP port of ssh on the host' -r
complete -c rove -n "__fish_rove_using_subcommand attach" -s l -d 'User to log in as' -r -f -a "(__fish_complete_users)"
complete -c rove -n "__fish_rove_using_subcommand attach" -s i -d 'File with the private key' -r -F
complete -c rove -n "__fish_rove_using_subcommand attach" -s J -d 'Hosts to jump through' -r -f -a "(__fish_print_hostnames)"
complete -c rove -n "__fish_rove_using_subcommand attach" -s F -d 'Configuration file of ssh' -r -F
complete -c rove -n "__fish_rove_using_subcommand attach" -s o -d 'Any option of ssh\'s configuration' -r
complete -c rove -n "__fish_rove_using_subcommand attach" -l view -d 'Only look: the server drops your keys'
complete -c rove -n "__fish_rove_using_subcommand attach" -l take -d 'Let all other clients go'
complete -c rove -n "__fish_rove_using_subcommand attach" -s a -d 'The same as --predict=always'
complete -c rove -n "__fish_rove_using_subcommand attach" -s n -d 'The same as --predict=never'
complete -c rove -n "__fish_rove_using_subcommand attach" -l predict-overwrite -d 'Guess that typing overwrites what is right of the cursor instead of pushing it on'
complete -c rove -n "__fish_rove_using_subcommand attach" -l no-init -d 'Stay on the terminal\'s main screen, also with mosh-server, whose sessions else take the alternate one'
complete -c rove -n "__fish_rove_using_subcommand attach" -l init -d 'Take the terminal\'s alternate screen for the whole session'
complete -c rove -n "__fish_rove_using_subcommand attach" -l no-clipboard -d 'Keep programs on the host from writing your clipboard. (None ever reads it.)'
complete -c rove -n "__fish_rove_using_subcommand attach" -l no-fallback -d 'Do not run ssh again when the host no longer answers'
complete -c rove -n "__fish_rove_using_subcommand attach" -l metered -d 'Where octets are paid for: with a rove there, neither end says a thing so often in case packets are lost'
complete -c rove -n "__fish_rove_using_subcommand attach" -l no-install -d 'Never ask whether to copy rove to a host that has no server'
complete -c rove -n "__fish_rove_using_subcommand attach" -s v -d 'Tell every step with its time; -vv makes ssh tell too, -vvv more'
complete -c rove -n "__fish_rove_using_subcommand attach" -s q -d 'Tell only of failures; ssh is told too'
complete -c rove -n "__fish_rove_using_subcommand attach" -s g -d 'Let other machines connect to ports of -L and -D that name no address'
complete -c rove -n "__fish_rove_using_subcommand attach" -l public-remote -d 'Let -R listen on other addresses of the host than loopback'
complete -c rove -n "__fish_rove_using_subcommand attach" -s A -d 'Let programs on the host use your agent, to list keys and to sign'
complete -c rove -n "__fish_rove_using_subcommand attach" -s N -d 'Run nothing on the host: only forward'
complete -c rove -n "__fish_rove_using_subcommand attach" -l local -d 'Run the server on this machine, without ssh'
complete -c rove -n "__fish_rove_using_subcommand attach" -l native -d 'Refuse to fall back to mosh\'s protocol: the host must have a rove that speaks the native one'
complete -c rove -n "__fish_rove_using_subcommand attach" -l mosh-wire -d 'Speak mosh\'s protocol with a rove server too, as older ones do'
complete -c rove -n "__fish_rove_using_subcommand attach" -s 4 -d 'Use IPv4 only'
complete -c rove -n "__fish_rove_using_subcommand attach" -s 6 -d 'Use IPv6 only'
complete -c rove -n "__fish_rove_using_subcommand attach" -s t -d 'Taken for the sake of habit: a session always has a terminal'
complete -c rove -n "__fish_rove_using_subcommand attach" -s C -d 'Octets are compressed anyway'
complete -c rove -n "__fish_rove_using_subcommand attach" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rove -n "__fish_rove_using_subcommand attach" -s V -l version -d 'Print version'
complete -c rove -n "__fish_rove_using_subcommand new" -s s -l name -d 'What to call the session: letters, digits, dots, underscores and hyphens. HOST:NAME says the same. Without a name: a number' -r
complete -c rove -n "__fish_rove_using_subcommand new" -l predict -d 'When to show what you type before the host has answered. The environment\'s MOSH_PREDICTION_DISPLAY counts too' -r -f -a "adaptive\t'On slow links'
always\t'On all links'
never\t'Not at all'
experimental\t'On all links, motions of the cursor at once'"
complete -c rove -n "__fish_rove_using_subcommand new" -l obscure -d 'Hide the times and the number of keys from a listener on the network: of keys on a line that does not echo (secrets, the default), of all (always; --obscure alone is that), or of none (never)' -r -f -a "secrets\t'The keys of a line that does not echo go with its Enter'
always\t'The same, and all other keys go in slots'
never\t'Each key goes at once'"
complete -c rove -n "__fish_rove_using_subcommand new" -l obscure-slot -d 'With --obscure: the milliseconds between two packets while you type, from 20 to 200 [default: 55, with --metered 100]' -r
complete -c rove -n "__fish_rove_using_subcommand new" -l history -d 'How many lines that scrolled by unseen your terminal gets at most. 0: none' -r
complete -c rove -n "__fish_rove_using_subcommand new" -l way -d 'By which way it goes on once ssh has started the server: UDP, and ssh\'s own connection until UDP answers and where it does not; or one of both alone' -r -f -a "auto\t'UDP, and ssh where UDP does not answer'
udp\t'UDP alone'
ssh\t'ssh alone'"
complete -c rove -n "__fish_rove_using_subcommand new" -s L -d 'Listen here, and go on from the host: [ADDRESS:]PORT:HOST:PORT. The path of a Unix socket may stand for either half' -r
complete -c rove -n "__fish_rove_using_subcommand new" -s R -d 'Listen on the host, and go on from here; with FROM alone, to where SOCKS says' -r
complete -c rove -n "__fish_rove_using_subcommand new" -s D -d 'Listen here for SOCKS, and go on from the host: [ADDRESS:]PORT' -r
complete -c rove -n "__fish_rove_using_subcommand new" -s W -d 'Make standard input and output a connection of the host\'s to this port' -r
complete -c rove -n "__fish_rove_using_subcommand new" -l give-up -d 'Without a shell: end when the host has been silent for this many seconds, or with m, h or d after the number minutes, hours or days [default: 12h for a command, 72h without]. Less than 20 s counts as 20 s' -r
complete -c rove -n "__fish_rove_using_subcommand new" -l udp-port -d 'UDP port or range for the server to use; 0 lets its system choose [default: 60001:60999]' -r
complete -c rove -n "__fish_rove_using_subcommand new" -l server -d 'Server to run, a command line for the shell there: a rove, or anything that takes mosh-server\'s words' -r
complete -c rove -n "__fish_rove_using_subcommand new" -l bind-server -d 'Address the server listens on: where ssh came in, any, or this one' -r
complete -c rove -n "__fish_rove_using_subcommand new" -l ssh -d 'Program that runs a command on a host: COMMAND HOST LINE. One called ssh gets options too' -r
complete -c rove -n "__fish_rove_using_subcommand new" -l family -d 'Which of the host\'s addresses to use: inet, inet6, all, prefer-inet or prefer-inet6' -r -f -a "inet\t''
inet6\t''
all\t''
prefer-inet\t''
prefer-inet6\t''"
complete -c rove -n "__fish_rove_using_subcommand new" -s p -d 'TCP port of ssh on the host' -r
complete -c rove -n "__fish_rove_using_subcommand new" -s l -d 'User to log in as' -r -f -a "(__fish_complete_users)"
complete -c rove -n "__fish_rove_using_subcommand new" -s i -d 'File with the private key' -r -F
complete -c rove -n "__fish_rove_using_subcommand new" -s J -d 'Hosts to jump through' -r -f -a "(__fish_print_hostnames)"
complete -c rove -n "__fish_rove_using_subcommand new" -s F -d 'Configuration file of ssh' -r -F
complete -c rove -n "__fish_rove_using_subcommand new" -s o -d 'Any option of ssh\'s configuration' -r
complete -c rove -n "__fish_rove_using_subcommand new" -l experimental-remote-ip -r -f -a "local\t''
remote\t''
proxy\t''"
complete -c rove -n "__fish_rove_using_subcommand new" -s A -l attach -d 'Attach to the session of that name if there is one'
complete -c rove -n "__fish_rove_using_subcommand new" -s a -d 'The same as --predict=always'
complete -c rove -n "__fish_rove_using_subcommand new" -s n -d 'The same as --predict=never'
complete -c rove -n "__fish_rove_using_subcommand new" -l predict-overwrite -d 'Guess that typing overwrites what is right of the cursor instead of pushing it on'
complete -c rove -n "__fish_rove_using_subcommand new" -l no-init -d 'Stay on the terminal\'s main screen, also with mosh-server, whose sessions else take the alternate one'
complete -c rove -n "__fish_rove_using_subcommand new" -l init -d 'Take the terminal\'s alternate screen for the whole session'
complete -c rove -n "__fish_rove_using_subcommand new" -l no-clipboard -d 'Keep programs on the host from writing your clipboard. (None ever reads it.)'
complete -c rove -n "__fish_rove_using_subcommand new" -l no-fallback -d 'Do not run ssh again when the host no longer answers'
complete -c rove -n "__fish_rove_using_subcommand new" -l metered -d 'Where octets are paid for: with a rove there, neither end says a thing so often in case packets are lost'
complete -c rove -n "__fish_rove_using_subcommand new" -l no-install -d 'Never ask whether to copy rove to a host that has no server'
complete -c rove -n "__fish_rove_using_subcommand new" -s v -d 'Tell every step with its time; -vv makes ssh tell too, -vvv more'
complete -c rove -n "__fish_rove_using_subcommand new" -s q -d 'Tell only of failures; ssh is told too'
complete -c rove -n "__fish_rove_using_subcommand new" -s g -d 'Let other machines connect to ports of -L and -D that name no address'
complete -c rove -n "__fish_rove_using_subcommand new" -l public-remote -d 'Let -R listen on other addresses of the host than loopback'
complete -c rove -n "__fish_rove_using_subcommand new" -s N -d 'Run nothing on the host: only forward'
complete -c rove -n "__fish_rove_using_subcommand new" -l local -d 'Run the server on this machine, without ssh'
complete -c rove -n "__fish_rove_using_subcommand new" -l native -d 'Refuse to fall back to mosh\'s protocol: the host must have a rove that speaks the native one'
complete -c rove -n "__fish_rove_using_subcommand new" -l mosh-wire -d 'Speak mosh\'s protocol with a rove server too, as older ones do'
complete -c rove -n "__fish_rove_using_subcommand new" -s 4 -d 'Use IPv4 only'
complete -c rove -n "__fish_rove_using_subcommand new" -s 6 -d 'Use IPv6 only'
complete -c rove -n "__fish_rove_using_subcommand new" -s t -d 'Taken for the sake of habit: a session always has a terminal'
complete -c rove -n "__fish_rove_using_subcommand new" -s C -d 'Words of ssh\'s and mosh\'s that say what is so anyway: octets are compressed, ssh gets no terminal, and all ways to the host\'s address are tried'
complete -c rove -n "__fish_rove_using_subcommand new" -l no-ssh-pty
complete -c rove -n "__fish_rove_using_subcommand new" -l forward-agent -d 'Let programs on the host use your agent, to list keys and to sign'
complete -c rove -n "__fish_rove_using_subcommand new" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rove -n "__fish_rove_using_subcommand new" -s V -l version -d 'Print version'
complete -c rove -n "__fish_rove_using_subcommand kill" -l udp-port -d 'UDP port or range for the server to use; 0 lets its system choose [default: 60001:60999]' -r
complete -c rove -n "__fish_rove_using_subcommand kill" -l server -d 'Server to run, a command line for the shell there: a rove, or anything that takes mosh-server\'s words' -r
complete -c rove -n "__fish_rove_using_subcommand kill" -l bind-server -d 'Address the server listens on: where ssh came in, any, or this one' -r
complete -c rove -n "__fish_rove_using_subcommand kill" -l ssh -d 'Program that runs a command on a host: COMMAND HOST LINE. One called ssh gets options too' -r
complete -c rove -n "__fish_rove_using_subcommand kill" -l family -d 'Which of the host\'s addresses to use: inet, inet6, all, prefer-inet or prefer-inet6' -r -f -a "inet\t''
inet6\t''
all\t''
prefer-inet\t''
prefer-inet6\t''"
complete -c rove -n "__fish_rove_using_subcommand kill" -s p -d 'TCP port of ssh on the host' -r
complete -c rove -n "__fish_rove_using_subcommand kill" -s l -d 'User to log in as' -r -f -a "(__fish_complete_users)"
complete -c rove -n "__fish_rove_using_subcommand kill" -s i -d 'File with the private key' -r -F
complete -c rove -n "__fish_rove_using_subcommand kill" -s J -d 'Hosts to jump through' -r -f -a "(__fish_print_hostnames)"
complete -c rove -n "__fish_rove_using_subcommand kill" -s F -d 'Configuration file of ssh' -r -F
complete -c rove -n "__fish_rove_using_subcommand kill" -s o -d 'Any option of ssh\'s configuration' -r
complete -c rove -n "__fish_rove_using_subcommand kill" -l all -d 'End all your sessions there'
complete -c rove -n "__fish_rove_using_subcommand kill" -s v -d 'Tell every step with its time; -vv makes ssh tell too, -vvv more'
complete -c rove -n "__fish_rove_using_subcommand kill" -s q -d 'Tell only of failures; ssh is told too'
complete -c rove -n "__fish_rove_using_subcommand kill" -l local -d 'Run the server on this machine, without ssh'
complete -c rove -n "__fish_rove_using_subcommand kill" -l native -d 'Refuse to fall back to mosh\'s protocol: the host must have a rove that speaks the native one'
complete -c rove -n "__fish_rove_using_subcommand kill" -l mosh-wire -d 'Speak mosh\'s protocol with a rove server too, as older ones do'
complete -c rove -n "__fish_rove_using_subcommand kill" -s 4 -d 'Use IPv4 only'
complete -c rove -n "__fish_rove_using_subcommand kill" -s 6 -d 'Use IPv6 only'
complete -c rove -n "__fish_rove_using_subcommand kill" -s t -d 'Taken for the sake of habit: a session always has a terminal'
complete -c rove -n "__fish_rove_using_subcommand kill" -s h -l help -d 'Print help'
complete -c rove -n "__fish_rove_using_subcommand kill" -s V -l version -d 'Print version'
complete -c rove -n "__fish_rove_using_subcommand help" -s h -l help -d 'Print help'

complete -c rove -n "test (count (commandline -opc)) -eq 1" -f -a "(__fish_print_hostnames)"
