//! `apibinding run`: the controller of a kcp.

use std::io::{self, IsTerminal, Write};

use apibinding::queue;
use apibinding::shell::{Controller, Lease, Server};
use apibinding::snapshot::Layout;
use tokio::runtime::Runtime;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use super::Verdict;
use super::args::{Log, RunArgs, RunLayout};
use super::connect::connect;
use super::failure::Failure;

/// How long a lease lasts, as Kubernetes' own controllers have it.
const LEASE: std::time::Duration = std::time::Duration::from_secs(15);

/// Runs until it is told to stop.
pub fn run(args: &RunArgs, out: &mut dyn Write) -> Result<Verdict, Failure> {
    #[cfg(feature = "sim")]
    if !args.embedded.is_empty() {
        return super::embedded::run(args, out);
    }
    let _ = out;
    log(args.log, LevelFilter::INFO);
    runtime()?.block_on(async {
        let mut stop = std::pin::pin!(stop()?);
        let (server, cache) = tokio::select! {
            connected = connect(&args.connect) => connected?,
            () = &mut stop => return Ok(Verdict::Fine),
        };
        let layout = layout(args).unwrap_or(Layout::Single);
        controller(args, server).cache_server(cache).layout(layout).dry_run(args.dry_run).run(stop).await?;
        Ok(Verdict::Fine)
    })
}

/// A controller as the arguments want it, wherever its server is.
pub fn controller(args: &RunArgs, server: impl Into<Server>) -> Controller {
    let lease = args.leader_elect.then(|| Lease {
        cluster: args.lease_cluster.clone(),
        namespace: args.lease_namespace.clone(),
        name: format!("apibinding-{}", args.shard),
        identity: identity(),
        duration: LEASE,
    });
    Controller::new(server)
        .workers(args.workers)
        .queue(queue::Config { max: args.max_backoff, bucket: None, ..queue::Config::default() })
        .shard(&args.shard)
        .lease(lease)
        .probes(args.metrics_addr)
}

/// The layout that was asked for.
pub fn layout(args: &RunArgs) -> Option<Layout> {
    args.layout.map(|layout| match layout {
        RunLayout::Single => Layout::Single,
        RunLayout::Split => Layout::Split,
    })
}

pub fn runtime() -> Result<Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

/// What happens is told on stderr. What kube has to say about refusals is told by the controller, in place.
pub fn log(format: Log, level: LevelFilter) {
    let shown = Targets::new().with_default(LevelFilter::WARN).with_target("apibinding", level);
    let shown = shown.with_target("kube_client", LevelFilter::OFF);
    let log = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let registry = tracing_subscriber::registry();
    match format {
        Log::Text => {
            registry.with(log.with_ansi(io::stderr().is_terminal()).with_target(false).with_filter(shown)).init();
        }
        Log::Json => registry.with(log.json().with_filter(shown)).init(),
    }
}

/// Comes to its end when the program is told to stop: from now on, and not only once it is waited for.
pub fn stop() -> io::Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    let told = {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut interrupted, mut terminated) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        async move {
            tokio::select! {
                _ = interrupted.recv() => {}
                _ = terminated.recv() => {}
            }
        }
    };
    #[cfg(not(unix))]
    let told = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    Ok(async {
        told.await;
        tracing::info!("told to stop");
    })
}

/// The name of this process among those that want to lead: where it runs, and what sets it apart there.
fn identity() -> String {
    let host =
        std::fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| std::fs::read_to_string("/etc/hostname"));
    let host = host.ok().filter(|host| !host.trim().is_empty()).unwrap_or_else(|| "somewhere".to_owned());
    let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{}_{}_{:x}", host.trim(), std::process::id(), since.as_nanos())
}
