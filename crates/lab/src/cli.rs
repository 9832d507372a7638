//! The command line of `rove-lab`: one subcommand for each experiment and tool.

use std::ffi::OsString;
use std::io::{self, BufRead as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::bench::Bench;
use crate::experiments::{self, ExperimentFlags};
use crate::flags::LinkFlags;
use crate::provenance::{self, Provenance};
use crate::real::RealFlags;
use crate::relay::{Config, Relay};
use crate::{
    bench, capture, demo, fake_ssh, frames, headlines, html, mutants, net, predict, real, record,
    scrollback, stale, sweep,
};
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

/// Emulated links, experiments and a demo for rove
#[derive(Parser)]
#[command(name = "rove-lab", version)]
struct Cli {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// A shell on this machine over an emulated bad link: no ssh, no root, no set-up
    Demo(LinkFlags),
    /// Carry UDP over an emulated link, on loopback or between machines
    Relay(RelayFlags),
    /// Run any two programs over an emulated link, in networks of their own
    Link(net::command::LinkFlags),
    /// Sum up a capture: packets by size, data and acks, a second and a keystroke
    Pcap(capture::summary::PcapFlags),
    /// Measure real programs beside stock mosh's
    Bench(BenchFlags),
    /// Run a program on a terminal of its own and record exactly what it writes
    Tee(TeeFlags),
    /// Replay recorded sessions in virtual time and judge what local echo showed of them
    Predict(predict::PredictFlags),
    /// Record a session with what was typed, for `predict`
    Record(predict::recorder::RecordFlags),
    /// Hold stock's rules in virtual time against the real stock client
    Calibrate(predict::calibrate::CalibrateFlags),
    /// Be the program of a recorded session: wait for its keys and answer as recorded
    #[command(name = "replay", alias = "act")]
    Act(predict::act::ActFlags),
    /// Compare the length of frames with stock mosh's over recorded sessions
    Frames(frames::FramesFlags),
    /// How long keys take over paths that lose datagrams
    Loss(ExperimentFlags),
    /// From which state a diff should start
    Reference(ExperimentFlags),
    /// Keys during a flood of output over narrow links
    Flood(ExperimentFlags),
    /// Lines that were missed: how soon they come, and what a key waits for meanwhile
    Scrollback(ExperimentFlags),
    /// How long to gather what a program writes
    Collection(ExperimentFlags),
    /// The congestion controller of bulk streams: alone, beside others, over paths that change
    Pace(ExperimentFlags),
    /// How long a session takes to be back after an interruption
    Roam(RoamFlags),
    /// Real programs: the Mosh paper's comparison, over cellular, loaded, wired and lossy paths
    Paper(RealFlags),
    /// Real programs: keys over paths that lose packets
    Cs244(RealFlags),
    /// Real programs: how old what one sees is
    Aoi(RealFlags),
    /// Real programs: the same keys at ssh, mosh and rove, as one animated picture
    Film(real::film::FilmFlags),
    /// Real programs: packets, octets, processor time and wake-ups for each keystroke, and idle
    Keystroke(RealFlags),
    /// Real programs: what packets tell a listener of keys and passwords
    Privacy(RealFlags),
    /// Real programs: Ctrl-C against a flood over a slow link
    Interrupt(RealFlags),
    /// Real programs: sessions that outlive their clients
    Attach(RealFlags),
    /// Real programs: a session over ssh where UDP is dropped
    Ways(RealFlags),
    /// Real programs: files over long, fat, lossy pipes, and what that does to others
    Bulk(real::bulk::BulkFlags),
    /// Real programs: memory and processor time of client and server in use
    Server(RealFlags),
    /// Hold a result on real programs against a second run of the same command
    Again(real::repeatability::RepeatabilityFlags),
    /// Gather all results into one HTML page
    Report(html::ReportFlags),
    /// List the results that are older than the code that made them
    Stale(stale::StaleFlags),
    /// Write the figures that documents quote from the results
    Headlines(headlines::HeadlinesFlags),
    /// Put small faults into the machines and count those that no test notices
    Mutants(mutants::MutantsFlags),
    /// Print where a result comes from that another program makes now, as the head of its Markdown
    Provenance(ProvenanceFlags),
    /// List the commands of a sweep for many machines, or merge what they printed
    Sweep(sweep::SweepFlags),
    /// One setting and seed of a sweep: prints one line of JSON
    Point(sweep::PointFlags),
    /// Compare stock's policy in the simulator with real mosh over the same link
    Agree(experiments::agree::AgreeFlags),
    /// Act as an ssh that runs the command at the far end of an emulated link
    #[command(hide = true)]
    There(ThereFlags),
    /// Act as an ssh that runs the command here, behind another rove-lab's relay
    #[command(hide = true)]
    Here(HereFlags),
}

/// Reads commands from standard input and ends with it: `roam`, `blackout SECONDS`, `status`, `quit`
#[derive(Args)]
struct RelayFlags {
    /// Where clients send to; port 0 lets the system choose
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The server
    #[arg(long, value_name = "ADDRESS:PORT")]
    to: SocketAddr,
    #[command(flatten)]
    link: LinkFlags,
}

#[derive(Args)]
struct BenchFlags {
    /// What to measure
    bench: Bench,
    /// Sessions of each program
    #[arg(long, default_value_t = 5)]
    runs: u32,
    /// Where the results go
    #[arg(long, value_name = "DIRECTORY", default_value = "results")]
    results: PathBuf,
}

#[derive(Args)]
struct ProvenanceFlags {
    /// The whole command that makes the result
    #[arg(long, value_name = "COMMAND")]
    made_by: String,
    /// The files and directories of the code that the result depends on, from the root of the repository
    #[arg(value_name = "PATH", required = true)]
    depends: Vec<String>,
}

#[derive(Args)]
struct TeeFlags {
    /// Where the record goes
    record: PathBuf,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    program: Vec<OsString>,
}

/// In virtual time, or with --real on real programs
#[derive(Args)]
struct RoamFlags {
    /// Real programs over emulated links
    #[arg(long)]
    real: bool,
    /// In virtual time: a tenth of the sessions
    #[arg(long, conflicts_with = "real")]
    small: bool,
    #[command(flatten)]
    flags: RealFlags,
}

#[derive(Args)]
struct ThereFlags {
    /// The far network, as a file
    #[arg(long)]
    network: PathBuf,
    /// What ssh would get
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

#[derive(Args)]
struct HereFlags {
    /// The socket of the other rove-lab's gate
    #[arg(long)]
    gate: PathBuf,
    /// What ssh would get
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Parses the command line and runs the subcommand. The exit status is that of the subcommand, or 255 on an error.
#[allow(clippy::disallowed_methods, reason = "a result names the program that it ran")]
pub fn main() -> ExitCode {
    let parser = Cli::command();
    let matches = parser.clone().get_matches();
    let rove = std::env::var("ROVE_BIN").ok().filter(|rove| !rove.is_empty());
    provenance::begin(provenance::spelled(&parser, &matches, rove.as_deref()));
    let command = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()).command;
    let done = match command {
        Verb::Demo(link) => demo::run(&link),
        Verb::Relay(flags) => relay(flags),
        Verb::Link(flags) => net::command::run(&flags),
        Verb::Pcap(flags) => capture::summary::run(&flags),
        Verb::Bench(flags) => bench::run(flags.bench, flags.runs, &flags.results).map(|()| 0),
        Verb::Tee(flags) => record::run(&flags.record, &flags.program),
        Verb::Predict(flags) => predict::run(&flags),
        Verb::Record(flags) => predict::recorder::run(&flags),
        Verb::Calibrate(flags) => predict::calibrate::run(&flags),
        Verb::Act(flags) => predict::act::run(&flags),
        Verb::Frames(flags) => frames::run(&flags),
        Verb::Loss(flags) => experiments::run(&flags, experiments::loss::report),
        Verb::Reference(flags) => experiments::run(&flags, experiments::reference::report),
        Verb::Flood(flags) => experiments::run(&flags, experiments::flood::report),
        Verb::Scrollback(flags) => experiments::run(&flags, scrollback::report),
        Verb::Collection(flags) => experiments::run(&flags, experiments::collection::report),
        Verb::Pace(flags) => experiments::run(&flags, experiments::pace::report),
        Verb::Roam(RoamFlags { real: true, flags, .. }) => real(&flags, real::roaming::run),
        Verb::Roam(RoamFlags { small, flags, .. }) => {
            let flags = ExperimentFlags { results: flags.results, small };
            experiments::run(&flags, experiments::roam::report)
        }
        Verb::Paper(flags) => real(&flags, real::paper::run),
        Verb::Cs244(flags) => real(&flags, real::losses::run),
        Verb::Aoi(flags) => real(&flags, real::age::run),
        Verb::Film(flags) => {
            net::command::be_allowed();
            real::film::run(&flags)
        }
        Verb::Keystroke(flags) => real(&flags, real::keystroke::run),
        Verb::Privacy(flags) => real(&flags, real::privacy::run),
        Verb::Interrupt(flags) => real(&flags, real::interrupt::run),
        Verb::Attach(flags) => real(&flags, real::attach::run),
        Verb::Ways(flags) => real(&flags, real::ways::run),
        Verb::Bulk(flags) => {
            net::command::be_allowed();
            real::bulk::run(&flags)
        }
        Verb::Server(flags) => real(&flags, real::footprint::run),
        Verb::Again(flags) => real::repeatability::run(&flags),
        Verb::Report(flags) => html::run(&flags),
        Verb::Stale(flags) => stale::run(&flags),
        Verb::Headlines(flags) => headlines::run(&flags),
        Verb::Mutants(flags) => mutants::run(&flags),
        Verb::Provenance(flags) => {
            let recorded = Provenance::of_this_process(flags.depends.iter().map(String::as_str));
            println!("{}", recorded.to_markdown(&flags.made_by));
            Ok(0)
        }
        Verb::Sweep(flags) => sweep::run(&flags),
        Verb::Point(flags) => sweep::point(&flags),
        Verb::There(flags) => real::stage::there(&flags.network, &flags.words),
        Verb::Agree(flags) => experiments::agree::run(&flags),
        Verb::Here(flags) => fake_ssh::run(&flags.gate, &flags.words),
    };
    match done {
        Ok(status) => ExitCode::from(status as u8),
        Err(error) => {
            eprintln!("rove-lab: {error}");
            ExitCode::from(255)
        }
    }
}

fn real(flags: &RealFlags, experiment: fn(&RealFlags) -> io::Result<i32>) -> io::Result<i32> {
    net::command::be_allowed();
    experiment(flags)
}

fn relay(flags: RelayFlags) -> io::Result<i32> {
    let relay = Relay::start(Config {
        listen: flags.listen,
        target: Some(flags.to),
        up: flags.link.profile(),
        down: flags.link.profile(),
        seed: flags.link.seed,
    })?;
    println!("{} -> {}: {}", relay.address(), flags.to, flags.link.describe());
    for line in io::stdin().lock().lines() {
        let line = line?;
        match line.split_whitespace().collect::<Vec<&str>>().as_slice() {
            ["roam"] => relay.roam(),
            ["blackout", seconds] => match seconds.parse().map(Duration::try_from_secs_f64) {
                Ok(Ok(span)) => relay.blackout(span),
                _ => eprintln!("rove-lab: {seconds:?} is no number of seconds"),
            },
            ["status"] => println!("{:#?}", relay.report()),
            ["quit"] => break,
            [] => {}
            _ => eprintln!("rove-lab: commands are roam, blackout SECONDS, status, quit"),
        }
    }
    relay.stop()?;
    Ok(0)
}
