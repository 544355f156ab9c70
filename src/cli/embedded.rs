//! `apibinding run --embedded`: the controller against a simulated kcp behind HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use apibinding::api::{BindingKey, Condition, Kind, Phase};
use apibinding::front::{Front, Settings};
use apibinding::shell::Handle;
use apibinding::sim::Kcp;
use apibinding::snapshot::{Layout, Origin, Snapshot};
use k8s_openapi::jiff::Timestamp;
use kube::{Client, Config};
use serde_json::{Value, json};
use tracing_subscriber::filter::LevelFilter;

use super::Verdict;
use super::args::{LayoutChoice, RunArgs, RunLayout};
use super::failure::Failure;
use super::given::Given;
use super::notes::counted;
use super::run::{controller, log, runtime, stop};

/// How often it is looked at how things are.
const LOOK: Duration = Duration::from_millis(100);

/// So many workspaces have a context in the kubeconfig.
const CONTEXTS: usize = 100;

/// So many bindings are shown, each on its line; of more, only how many are how far.
const SHOWN: usize = 40;

/// Runs until all rest, or until it is told to stop.
pub fn run(args: &RunArgs, out: &mut dyn Write) -> Result<Verdict, Failure> {
    // What happens is in the table; only what is wrong is told besides.
    log(args.log, LevelFilter::WARN);
    let choice = match args.layout {
        None => LayoutChoice::Auto,
        Some(RunLayout::Single) => LayoutChoice::Single,
        Some(RunLayout::Split) => LayoutChoice::Split,
    };
    let now = Timestamp::try_from(std::time::SystemTime::now()).unwrap_or_default();
    let given = Given::read(&args.embedded, &args.global, choice, now)?;
    let layout = given.layout;
    let mut kcp = Kcp::new(1);
    kcp.set_now(now);
    kcp.load(Origin::Local, given.objects);
    kcp.load(Origin::Global, given.global);
    runtime()?.block_on(play(args, kcp, layout, out))
}

async fn play(args: &RunArgs, kcp: Kcp, layout: Layout, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let settings = Settings { port: args.port, layout, establishing: args.establishing, ..Settings::default() };
    let front = Front::serve(kcp, settings)
        .map_err(|why| Failure::Connection(format!("cannot serve a kcp on 127.0.0.1, port {}: {why}", args.port)))?;
    let stop = stop()?;
    let kubeconfig = Kubeconfig::write(&front)?;
    writeln!(out, "a simulated kcp at {}; for kubectl:", front.url())?;
    writeln!(out, "  export KUBECONFIG={}", kubeconfig.path.display())?;
    writeln!(out, "  kubectl --context {} get apibindings", kubeconfig.context)?;
    out.flush()?;

    let address = front.url().parse().map_err(|why| Failure::Connection(format!("{}: {why}", front.url())))?;
    let mut config = Config::new(address);
    config.default_retry = false;
    let client = Client::try_from(config).map_err(|why| Failure::Connection(why.to_string()))?;
    let controller = controller(args, client).layout(layout).start().await?;
    let handle = controller.handle();
    let begun = Instant::now();
    let mut table = Table::new(io::stdout().is_terminal());
    {
        let watching = async {
            loop {
                tokio::time::sleep(LOOK).await;
                table.show(&handle.snapshot(), begun.elapsed(), out)?;
                if !args.stay && is_at_rest(&handle, &front) {
                    return Ok(());
                }
            }
        };
        let (told, tell) = tokio::sync::oneshot::channel::<()>();
        let running = controller.run(async {
            let _ = tell.await;
        });
        let mut running = std::pin::pin!(running);
        let ended: Result<(), Failure> = tokio::select! {
            ended = &mut running => return Err(ended.err().map_or_else(|| Failure::Connection("it ended".into()), Into::into)),
            ended = watching => ended,
            () = stop => Ok(()),
        };
        drop(told);
        running.await?;
        ended?;
    }
    table.show(&handle.snapshot(), begun.elapsed(), out)?;
    table.sum_up(&handle.snapshot(), begun.elapsed(), front.requests(), out)?;
    Ok(Verdict::Fine)
}

fn is_at_rest(handle: &Handle, front: &Front) -> bool {
    // What the others have done comes to the controller a moment later: both have to rest, and still do.
    handle.is_idle() && front.is_at_rest() && handle.is_idle()
}

/// A file that leads kubectl to the server, as long as that runs.
struct Kubeconfig {
    path: PathBuf,
    /// The current context.
    context: String,
}

impl Kubeconfig {
    /// A context for each workspace, called by its path; that of the first with a binding is the current one.
    fn write(front: &Front) -> Result<Self, Failure> {
        let unreadable = |why: serde_json::Error| Failure::Output(why.into());
        let mut config: Value = serde_json::from_str(&front.kubeconfig()).map_err(unreadable)?;
        let (workspaces, first) = front.with(|kcp| {
            let of = |object: &Value, annotation: &str| {
                object
                    .pointer(&format!("/metadata/annotations/kcp.io~1{annotation}"))
                    .and_then(Value::as_str)
                    .map(str::to_owned)
            };
            let homes = kcp.list(Origin::Local, Kind::LogicalCluster, None);
            let homes: BTreeMap<String, String> = homes
                .filter_map(|home| Some((of(home, "cluster")?, of(home, "path").or_else(|| of(home, "cluster"))?)))
                .collect();
            let binding = kcp.list(Origin::Local, Kind::ApiBinding, None).next();
            let first = binding.and_then(|binding| homes.get(&of(binding, "cluster")?)).cloned();
            (homes.into_values().take(CONTEXTS).collect::<BTreeSet<_>>(), first)
        });
        for name in &workspaces {
            let server = format!("{}/clusters/{name}", front.url());
            push(&mut config, "clusters", json!({"name": name, "cluster": {"server": server}}));
            push(&mut config, "contexts", json!({"name": name, "context": {"cluster": name, "user": "shard-admin"}}));
        }
        let context = first.filter(|first| workspaces.contains(first)).unwrap_or_else(|| "root".to_owned());
        if let Some(config) = config.as_object_mut() {
            config.insert("current-context".to_owned(), json!(context));
        }
        let path = std::env::temp_dir().join(format!("apibinding-{}.kubeconfig", std::process::id()));
        let named = |why: io::Error| io::Error::new(why.kind(), format!("{}: {why}", path.display()));
        fs::write(&path, format!("{config:#}\n")).map_err(named)?;
        Ok(Self { path, context })
    }
}

/// Adds an entry to a list of a kubeconfig, unless it has one of that name.
fn push(config: &mut Value, list: &str, entry: Value) {
    let entries = config.get_mut(list).and_then(Value::as_array_mut);
    if let Some(entries) = entries.filter(|entries| entries.iter().all(|known| known.get("name") != entry.get("name")))
    {
        entries.push(entry);
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // Whoever took it away did what is done here.
        let _ = fs::remove_file(&self.path);
    }
}

/// How a binding is.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    phase: String,
    why: String,
}

/// The bindings as they come to rest: a table where there is a terminal, else a line a change.
struct Table {
    is_terminal: bool,
    rows: BTreeMap<BindingKey, Row>,
    /// How many lines of the terminal are to be written again.
    lines: usize,
    told: Option<(String, Instant)>,
}

impl Table {
    fn new(is_terminal: bool) -> Self {
        Self { is_terminal, rows: BTreeMap::new(), lines: 0, told: None }
    }

    fn show(&mut self, known: &Snapshot, elapsed: Duration, out: &mut dyn Write) -> Result<(), Failure> {
        let keys = known.bindings();
        if keys.len() > SHOWN {
            return self.show_counts(known, &keys, elapsed, out);
        }
        let rows: BTreeMap<BindingKey, Row> =
            keys.into_iter().filter_map(|key| Some((key.clone(), row(known, &key)?))).collect();
        if rows == self.rows {
            return Ok(());
        }
        if self.is_terminal {
            self.go_back(out)?;
            for (key, row) in &rows {
                writeln!(out, "\x1b[2K{}", line(known, key, row))?;
            }
            self.lines = rows.len();
        } else {
            let gone = self.rows.keys().filter(|key| !rows.contains_key(*key));
            for key in gone {
                writeln!(out, "{:7.1} s  {:<40} gone", elapsed.as_secs_f64(), place(known, key))?;
            }
            for (key, row) in rows.iter().filter(|(key, row)| self.rows.get(*key) != Some(*row)) {
                writeln!(out, "{:7.1} s  {}", elapsed.as_secs_f64(), line(known, key, row))?;
            }
        }
        self.rows = rows;
        Ok(out.flush()?)
    }

    fn show_counts(
        &mut self,
        known: &Snapshot,
        keys: &[BindingKey],
        elapsed: Duration,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let text = counts(known, keys);
        let is_news = self
            .told
            .as_ref()
            .is_none_or(|(told, at)| *told != text && (self.is_terminal || at.elapsed() > Duration::from_secs(1)));
        if !is_news {
            return Ok(());
        }
        if self.is_terminal {
            self.go_back(out)?;
            self.lines = 1;
        }
        let clear = if self.is_terminal { "\x1b[2K" } else { "" };
        writeln!(out, "{clear}{:7.1} s  {text}", elapsed.as_secs_f64())?;
        self.told = Some((text, Instant::now()));
        Ok(out.flush()?)
    }

    /// To the line where the table begins.
    fn go_back(&mut self, out: &mut dyn Write) -> Result<(), Failure> {
        if self.lines > 0 {
            write!(out, "\x1b[{}A\x1b[J", self.lines)?;
        }
        Ok(())
    }

    fn sum_up(&self, known: &Snapshot, elapsed: Duration, requests: u64, out: &mut dyn Write) -> Result<(), Failure> {
        let keys = known.bindings();
        writeln!(
            out,
            "{}: {}, after {:.1} s and {requests} requests",
            counted(keys.len(), "binding", "bindings"),
            counts(known, &keys),
            elapsed.as_secs_f64()
        )?;
        Ok(())
    }
}

fn counts(known: &Snapshot, keys: &[BindingKey]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for binding in keys.iter().filter_map(|key| known.binding(key)) {
        *counts.entry(named(&binding.status.phase)).or_default() += 1;
    }
    let told: Vec<String> = counts.into_iter().map(|(phase, count)| format!("{count} {phase}")).collect();
    if told.is_empty() { "none".to_owned() } else { told.join(", ") }
}

fn named(phase: &Phase) -> &str {
    match phase.as_str() {
        "" => "without a phase",
        phase => phase,
    }
}

fn row(known: &Snapshot, key: &BindingKey) -> Option<Row> {
    let status = &known.binding(key)?.status;
    let wrong = |kind: &str| status.condition(kind).filter(|condition| condition.status == "False");
    let kinds = [Condition::API_EXPORT_VALID, Condition::INITIAL_BINDING_COMPLETED, Condition::BINDING_UP_TO_DATE];
    let why = kinds.into_iter().find_map(wrong);
    let why = why.map(|condition| format!("{}: {}", condition.reason, condition.message)).unwrap_or_default();
    // A message of several lines would make a table of none.
    Some(Row { phase: named(&status.phase).to_owned(), why: why.split_whitespace().collect::<Vec<_>>().join(" ") })
}

fn line(known: &Snapshot, key: &BindingKey, row: &Row) -> String {
    let style = match (row.phase.as_str(), row.why.is_empty()) {
        ("Bound", true) => Style::new().fg_color(Some(AnsiColor::Green.into())),
        (_, false) => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
        _ => Style::new(),
    };
    let why: String = row.why.chars().take(90).collect();
    let more = if row.why.chars().count() > 90 { "…" } else { "" };
    format!("{:<40} {style}{:<10}{style:#} {why}{more}", place(known, key), row.phase).trim_end().to_owned()
}

/// A binding, by the path of its workspace if that is known.
fn place(known: &Snapshot, key: &BindingKey) -> String {
    let path = known.logical_cluster(&key.cluster).map(|home| home.path.to_string());
    format!("{}/{}", path.filter(|path| !path.is_empty()).unwrap_or_else(|| key.cluster.to_string()), key.name)
}
