//! The arguments.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use apibinding::api::BindingKey;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use k8s_openapi::jiff::Timestamp;

use super::read::STDIN;

const EXAMPLES: &str = "\
Examples:
  What would happen next, and what in the end?
    apibinding plan -f world.yaml
    apibinding plan -f world.yaml --settle

  Why is the binding `geese` of the workspace root:org:meadow not bound?
    apibinding explain -f world.yaml root:org:meadow/geese

  A dump of a kcp is its lists, one after the other, as a user of the group system:masters gets them
  (KCP is the server's address, without /clusters; TOKEN that user's). The cache server has only the
  first three:
    for list in apis.kcp.io/v1alpha2/apiexports apis.kcp.io/v1alpha1/apiresourceschemas \\
        apis.kcp.io/v1alpha1/apiconversions apis.kcp.io/v1alpha2/apibindings \\
        core.kcp.io/v1alpha1/logicalclusters apiextensions.k8s.io/v1/customresourcedefinitions; do
      curl -gsSf -H \"authorization: Bearer $TOKEN\" \"$KCP/clusters/*/apis/$list\"
    done > local.json
    ... \"$KCP/services/cache/shards/*/clusters/*/apis/$list\" ... > global.json
    apibinding plan -f local.json --global global.json

Exit status:
  0  nothing to do; of explain: it is bound
  2  something to do; of explain: it is not bound
  1  an error, wrong usage included";

/// What kcp's APIBinding controller would do, and why a binding is not bound
///
/// It reads dumps of a kcp, or worlds written by hand, and never talks to a server.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES, arg_required_else_help = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what the controller would do next
    ///
    /// Each binding is planned on its own, on the input as it is, every effect taken to succeed. The
    /// keys of bindings that are gone and left locks behind are planned too.
    #[command(
        after_help = EXAMPLES,
        override_usage = "apibinding plan [OPTIONS] --filename <PATH>... [--global <PATH>...] [BINDING]..."
    )]
    Plan(PlanArgs),
    /// Show why a binding is, or is not, bound
    #[command(
        after_help = EXAMPLES,
        override_usage = "apibinding explain [OPTIONS] --filename <PATH>... [--global <PATH>...] <BINDING>"
    )]
    Explain(ExplainArgs),
    /// Write what `plan` and `explain` read: all that the controller reads of a running kcp
    ///
    /// The lists of six kinds, of all logical clusters, without managed fields.
    #[cfg(feature = "shell")]
    #[command(after_help = DUMPS)]
    Dump(DumpArgs),
    /// Be the APIBinding controller of a kcp
    ///
    /// One process serves one shard, whose own APIBinding controller is to be off. It waits for the server as
    /// long as that takes, and ends when it is told to (SIGINT, SIGTERM), or when something is wrong that
    /// waiting does not mend.
    #[cfg(feature = "shell")]
    #[command(after_help = RUNS)]
    Run(RunArgs),
    /// Play worlds in which everything goes wrong, and ask whether all laws hold
    ///
    /// A world is that of the input, in which only controllers and the other parties of a kcp do anything; or
    /// a small, crowded one that a seed decides, with users who come and go. For a while things go
    /// wrong; then nothing does any more, and all has to come to rest.
    #[cfg(feature = "sim")]
    #[command(after_help = SIMULATIONS)]
    Simulate(SimulateArgs),
}

#[derive(Debug, Args)]
pub struct PlanArgs {
    #[command(flatten)]
    pub input: Input,

    /// Play all bindings in the order of their keys on one world until it rests
    ///
    /// Answers are those of a kcp in which nothing fails. BINDING then says which ones to show: the
    /// others are played all the same.
    #[arg(long)]
    pub settle: bool,

    /// With --settle: whether CRDs that are created become established
    #[arg(
        long,
        value_name = "BOOL",
        requires = "settle",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true"
    )]
    pub establish: bool,

    /// Name the bindings that have nothing to do, too
    #[arg(short, long)]
    pub verbose: bool,

    /// How to print it
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub output: Format,

    /// Which bindings: CLUSTER/NAME or CLUSTER|NAME, the cluster by id or path [default: all]
    #[arg(value_name = "BINDING")]
    pub bindings: Vec<String>,
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    #[command(flatten)]
    pub input: Input,

    /// How to print it
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub output: Format,

    /// Which binding: CLUSTER/NAME or CLUSTER|NAME, the cluster by id or path
    #[arg(value_name = "BINDING")]
    pub bindings: Vec<String>,
}

#[cfg(feature = "shell")]
const RUNS: &str = "\
Examples:
  The controller of the shard of an admin kubeconfig:
    apibinding run --kubeconfig .kcp/admin.kubeconfig --context shard-base

  What it would do, without doing it:
    apibinding run --kubeconfig .kcp/admin.kubeconfig --context shard-base --dry-run

  A kcp to play with, in which the world of a file lives:
    apibinding run --embedded world.yaml --stay

Exit status:
  0  it was told to stop
  1  an error, wrong usage included";

#[cfg(feature = "shell")]
const DUMPS: &str = "\
Examples:
  A dump to plan on:
    apibinding dump --kubeconfig .kcp/admin.kubeconfig --context shard-base \\
        -f local.yaml --global global.yaml
    apibinding plan -f local.yaml --global global.yaml

  The same without files:
    apibinding plan --live --kubeconfig .kcp/admin.kubeconfig --context shard-base";

/// How to reach a server, as kubectl takes it.
#[cfg(feature = "shell")]
#[derive(Debug, Args)]
pub struct ConnectArgs {
    /// The kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then that of the pod]
    #[arg(long, value_name = "PATH", conflicts_with = "server")]
    pub kubeconfig: Option<PathBuf>,

    /// Which context of it [default: the current one]
    ///
    /// What the server's address has behind `/clusters` is left out: all logical clusters are meant.
    #[arg(long, value_name = "NAME", conflicts_with = "server")]
    pub context: Option<String>,

    /// The server's address, in place of a kubeconfig
    #[arg(long, value_name = "URL")]
    pub server: Option<http::Uri>,

    /// With --server: the file with the token; it is read again when it changes
    #[arg(long, value_name = "PATH", requires = "server")]
    pub token_file: Option<PathBuf>,

    /// With --server: the file with the certificates that the server's is to be checked by
    #[arg(long, value_name = "PATH", requires = "server")]
    pub certificate_authority: Option<PathBuf>,

    /// Where the global copies of exports, schemas and conversions are: `server` itself, `none`, or the
    /// kubeconfig of a cache server that stands alone
    #[arg(long, value_name = "WHERE", default_value = "server")]
    pub cache_server: String,
}

#[cfg(feature = "shell")]
#[derive(Debug, Args)]
pub struct DumpArgs {
    #[command(flatten)]
    pub connect: ConnectArgs,

    /// The file to write, or - for standard output
    #[arg(short = 'f', long = "filename", value_name = "PATH", default_value = "-")]
    pub file: PathBuf,

    /// The file for the cache server's copies [default: they are left out, and said to be]
    #[arg(long, value_name = "PATH")]
    pub global: Option<PathBuf>,

    /// Leave out the CA bundles of conversion webhooks
    #[arg(long)]
    pub without_ca_bundles: bool,

    /// Leave out the annotation in which kubectl keeps what was applied last
    #[arg(long)]
    pub without_last_applied: bool,

    /// How to write it
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml")]
    pub output: DumpFormat,
}

/// How a dump is written.
#[cfg(feature = "shell")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DumpFormat {
    Yaml,
    Json,
}

#[cfg(feature = "shell")]
#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub connect: ConnectArgs,

    /// The same against a simulated kcp with this world in it, behind a real HTTP server on 127.0.0.1
    ///
    /// Files, folders, or - for standard input, as `plan` reads them. It shows how bindings come to rest, and
    /// ends when all do.
    #[cfg(feature = "sim")]
    #[arg(long, value_name = "PATH", num_args = 1.., conflicts_with_all = ["kubeconfig", "context", "server", "dry_run"])]
    pub embedded: Vec<PathBuf>,

    /// With --embedded: what the cache server has besides
    #[cfg(feature = "sim")]
    #[arg(long, value_name = "PATH", num_args = 1.., requires = "embedded")]
    pub global: Vec<PathBuf>,

    /// With --embedded: go on when all rest, until Ctrl-C
    #[cfg(feature = "sim")]
    #[arg(long, requires = "embedded")]
    pub stay: bool,

    /// With --embedded: the port of the server [default: one that is free]
    #[cfg(feature = "sim")]
    #[arg(long, value_name = "PORT", requires = "embedded", default_value_t = 0)]
    pub port: u16,

    /// With --embedded: how long a CRD takes to be established; in a real kcp it is five seconds
    #[cfg(feature = "sim")]
    #[arg(long, value_name = "TIME", requires = "embedded", default_value = "5s", value_parser = duration)]
    pub establishing: std::time::Duration,

    /// How locks are kept [default: single, the one annotation of the kcp releases so far; of a world that
    /// is given, as it shows]
    #[arg(long, value_name = "LAYOUT")]
    pub layout: Option<RunLayout>,

    /// How many bindings are worked on at a time
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub workers: usize,

    /// How long a binding that fails again and again waits at most, such as 60s or 5m
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub max_backoff: std::time::Duration,

    /// The shard's name, for metrics and the lease
    #[arg(long, value_name = "NAME", default_value = "root")]
    pub shard: String,

    /// Work only while no other process of this shard does: whoever holds a Lease works
    #[arg(long)]
    pub leader_elect: bool,

    /// The logical cluster in which the Lease is
    ///
    /// That of the default is the shard's own, and is there while a kcp starts and waits for its bindings: others have
    /// no namespace then.
    #[arg(long, value_name = "CLUSTER", default_value = "system:admin")]
    pub lease_cluster: String,

    /// The namespace in which the Lease is
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub lease_namespace: String,

    /// Where /metrics, /healthz and /readyz are answered, such as 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS")]
    pub metrics_addr: Option<std::net::SocketAddr>,

    /// How what happens is written to stderr
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log: Log,

    /// Write nothing: say what would be written
    #[arg(long)]
    pub dry_run: bool,
}

/// How locks are kept.
#[cfg(feature = "shell")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RunLayout {
    Single,
    Split,
}

/// How what happens is written.
#[cfg(feature = "shell")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Log {
    Text,
    Json,
}

#[cfg(feature = "sim")]
const SIMULATIONS: &str = "\
Examples:
  One world, and all that happens in it:
    apibinding simulate --seed 7 --trace

  A thousand worlds in which controllers crash and answers get lost:
    apibinding simulate --worlds 1000 --faults crash,answer-lost

Faults:
  request-lost, answer-lost, conflict, already-exists, invalid, forbidden, too-many-requests, timeout,
  internal, unavailable, gone, crash, two-controllers, clock, watch-lag, watch-double, watch-coalesce,
  watch-drop, watch-past, cache-lag, stale-clones; and, not among `all`, since nothing can be promised
  against them: stale-admission, stale-clean-up, vandals

Exit status:
  0  all laws held, and all worlds came to rest
  2  a law was broken
  1  an error, wrong usage included";

#[cfg(feature = "sim")]
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// Files, folders, or - for standard input: as `plan` reads them [default: worlds of the seeds]
    #[arg(short = 'f', long = "filename", value_name = "PATH", num_args = 1..)]
    pub files: Vec<PathBuf>,

    /// The same, for what the cache server has besides
    #[arg(long, value_name = "PATH", num_args = 1.., requires = "files")]
    pub global: Vec<PathBuf>,

    /// How locks are kept [default: as the input or the seed says]
    #[arg(long, value_name = "LAYOUT", default_value = "auto")]
    pub layout: LayoutChoice,

    /// When it begins (RFC 3339) [default: 2026-06-01T12:00:00Z]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub now: Option<Timestamp>,

    /// What decides all that is left to chance; of several worlds that of the first, then one more each
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// How many worlds
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub worlds: u64,

    /// How many workspaces a world has [default: a few]
    #[arg(long, value_name = "N", conflicts_with = "files")]
    pub workspaces: Option<usize>,

    /// How many bindings a world has at first, in all its workspaces [default: a few]
    #[arg(long, value_name = "N", conflicts_with = "files")]
    pub bindings: Option<usize>,

    /// How many things users do [default: 12]
    #[arg(long, value_name = "N", conflicts_with = "files")]
    pub deeds: Option<usize>,

    /// On how many shards the logical clusters are [default: as the seed says; of an input, one]
    #[arg(long, value_name = "N")]
    pub shards: Option<usize>,

    /// How many workers a controller has
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub workers: usize,

    /// What goes wrong: all, none, or names with commas between
    #[arg(long, value_name = "LIST", default_value = "all")]
    pub faults: apibinding::sim::Faults,

    /// Ask no laws but that all comes to rest, which is quicker
    #[arg(long)]
    pub no_laws: bool,

    /// Print all that happens
    #[arg(long)]
    pub trace: bool,

    /// How to print it
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub output: Format,
}

#[derive(Debug, Args)]
pub struct Input {
    /// Files, folders, or - for standard input: JSON or YAML, documents one after the other, Lists
    /// included
    ///
    /// Of a folder, its *.json, *.yaml and *.yml are read, without those that --global names. YAML
    /// means what it means to kubectl: yes and on are booleans, 0755 is octal. The same object may be
    /// given twice if it is the same to the letter.
    #[arg(short = 'f', long = "filename", value_name = "PATH", num_args = 1..)]
    #[cfg_attr(feature = "shell", arg(required_unless_present = "live"))]
    #[cfg_attr(not(feature = "shell"), arg(required = true))]
    pub files: Vec<PathBuf>,

    /// The same, for what the cache server has: the global copies of exports, schemas and conversions
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub global: Vec<PathBuf>,

    /// The current time (RFC 3339) [default: the system's clock]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub now: Option<Timestamp>,

    /// How locks are kept: `single` is the one annotation of the kcp releases so far
    ///
    /// auto: single if some LogicalCluster has the annotation internal.apis.kcp.io/resource-bindings
    /// and none of internal.apis.kcp.io/locks-*; else split, also if there are no such annotations at
    /// all. LogicalClusters of both layouts in one input are an error.
    #[arg(long, value_name = "LAYOUT", default_value = "auto")]
    pub layout: LayoutChoice,

    /// Read from a running kcp, in place of files
    #[cfg(feature = "shell")]
    #[arg(long, conflicts_with_all = ["files", "global"])]
    pub live: bool,

    #[cfg(feature = "shell")]
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
    Yaml,
}

/// How locks are kept, or that the input tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LayoutChoice {
    Split,
    Single,
    Auto,
}

impl Input {
    /// Takes out of the paths what is a BINDING.
    ///
    /// `-f` and `--global` take as many paths as there are, so that `--global cache-*.json` does what
    /// it says; then nothing but its look sets a BINDING apart that stands behind them.
    pub fn take_bindings(&mut self) -> Vec<String> {
        let mut bindings = Vec::new();
        for paths in [&mut self.files, &mut self.global] {
            // The first is a path, since one was asked for.
            let behind_first = 1.min(paths.len())..;
            bindings.extend(paths.extract_if(behind_first, |path| is_binding(path)).map(text));
        }
        bindings
    }

    pub fn now(&self) -> Timestamp {
        self.now.unwrap_or_else(|| {
            // The controller keeps times in whole seconds; before 1970 there was no kcp.
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            i64::try_from(since.as_secs()).ok().and_then(|now| Timestamp::from_second(now).ok()).unwrap_or_default()
        })
    }
}

fn text(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}

fn is_binding(path: &Path) -> bool {
    let Some(text) = path.to_str().filter(|text| *text != STDIN) else { return false };
    let is_manifest = [".json", ".yaml", ".yml"].iter().any(|ending| text.ends_with(ending));
    let is_key = text.parse().is_ok_and(|key: BindingKey| !key.cluster.is_empty());
    is_key && !is_manifest && !path.exists()
}

#[cfg(feature = "shell")]
fn duration(text: &str) -> Result<std::time::Duration, String> {
    let time = text.parse::<k8s_openapi::jiff::SignedDuration>().map_err(|why| format!("{why}: say 60s or 5m"))?;
    std::time::Duration::try_from(time).map_err(|_| "a time that is less than none".to_owned())
}

fn time(text: &str) -> Result<Timestamp, String> {
    let expected = "expected an RFC 3339 time, such as 2026-06-01T12:00:00Z, and none after";
    text.parse().map_err(|_| format!("{expected} {}", Timestamp::MAX.strftime("%Y-%m-%dT%H:%M:%SZ")))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_make_sense() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_binding_behind_paths_is_none() {
        let parse = |line: &str| {
            let Command::Plan(mut args) = Cli::try_parse_from(line.split(' ')).unwrap().command else {
                panic!("{line}")
            };
            let found = args.input.take_bindings();
            let paths = |paths: Vec<PathBuf>| paths.into_iter().map(text).collect::<Vec<_>>().join(" ");
            (paths(args.input.files), paths(args.input.global), [args.bindings, found].concat().join(" "))
        };
        let told = |files: &str, global: &str, bindings: &str| (files.into(), global.into(), bindings.into());
        assert_eq!(parse("apibinding plan -f a.json src root:org/b c|d"), told("a.json src", "", "root:org/b c|d"));
        assert_eq!(parse("apibinding plan -f a.json -f - --global b c e/f"), told("a.json -", "b c", "e/f"));
        assert_eq!(parse("apibinding plan a/b -f c d/e.json src/cli"), told("c d/e.json src/cli", "", "a/b"));
        assert_eq!(parse("apibinding plan -f no/such"), told("no/such", "", ""));
    }
}
