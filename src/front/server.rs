//! Sockets: connections are accepted, requests read and answered, and faults put in between.

#![allow(clippy::disallowed_types, reason = "a server listens")]

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ask::Ask;
use super::fault::Fault;
use super::house::prepare;
use super::outgoing::{Cut, Outgoing};
use super::refusal;
use super::reply::{Content, Reply};
use super::shared::Shared;
use super::telling::Telling;

/// A request may not be longer.
const LIMIT: usize = 3 * 1024 * 1024;
/// So many chores are done before others have their turn.
const CHORES: usize = 32;

/// A server that runs.
#[derive(Debug)]
pub(super) struct Running {
    address: SocketAddr,
    end: CancellationToken,
    tasks: TaskTracker,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl Running {
    pub fn start(shared: &Arc<Shared>, port: u16) -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let _entered = runtime.enter();
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let running =
            Self { address: listener.local_addr()?, end: CancellationToken::new(), tasks: TaskTracker::new() };
        let (end, tasks) = (running.end.clone(), running.tasks.clone());
        running.tasks.spawn(end.clone().run_until_cancelled_owned(accept(
            listener,
            shared.clone(),
            end.clone(),
            tasks,
        )));
        running.tasks.spawn(end.run_until_cancelled_owned(clock(shared.clone())));
        Ok(running)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub async fn stop(self) {
        self.end.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, end: CancellationToken, tasks: TaskTracker) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection = connection(stream, shared.clone());
                tasks.spawn(end.clone().run_until_cancelled_owned(connection));
            }
            // Too many of them, for instance: some will end.
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    // Answers are short and waited for.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| serve(shared.clone(), request));
    // What goes wrong with a connection is the client's business.
    let _ = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
}

/// Lets the others do their part when its time has come.
async fn clock(shared: Arc<Shared>) {
    loop {
        let next = shared.change(|house| {
            let mut left = CHORES;
            while left > 0 && house.do_chore() {
                left -= 1;
            }
            house.next_look()
        });
        match next {
            Some(Duration::ZERO) => tokio::task::yield_now().await,
            Some(next) => {
                tokio::select! {
                    () = sleep(next) => {}
                    () = shared.alarm.notified() => {}
                }
            }
            None => shared.alarm.notified().await,
        }
    }
}

async fn serve(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Outgoing>, Cut> {
    let mut ask = Ask::of(request.method(), request.uri());
    let admitted = shared.access.admit(&mut ask, request.headers());
    let number = shared.record().begin(&mut ask);
    let fault = shared.fault(&ask);
    match &fault {
        Some(Fault::Cut) => return Err(Cut),
        Some(Fault::Answer(answer)) => {
            shared.record().end(number, answer.status().as_u16());
            return Ok(answer.clone().map(Outgoing::Whole));
        }
        Some(Fault::Delay(delay)) => sleep(*delay).await,
        _ => {}
    }
    let reply = match admitted {
        Ok(()) => reply(&shared, &ask, request).await?,
        Err(reply) => reply,
    };
    let response = reply.encode();
    match fault {
        Some(Fault::Lose) => return Err(Cut),
        Some(Fault::Late(delay)) => sleep(delay).await,
        _ => {}
    }
    shared.record().end(number, response.status().as_u16());
    Ok(outgoing(&shared, response, fault))
}

async fn reply(shared: &Shared, ask: &Ask, request: Request<Incoming>) -> Result<Reply, Cut> {
    let (head, body) = request.into_parts();
    let body = match Limited::new(body, LIMIT).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Ok(refusal::too_large()),
        Err(_) => return Err(Cut),
    };
    Ok(match prepare(ask, &Request::from_parts(head, body)) {
        Ok(call) => shared.change(|house| house.do_call(ask, call)),
        Err(reply) => reply,
    })
}

fn outgoing(shared: &Arc<Shared>, response: Response<Content>, fault: Option<Fault>) -> Response<Outgoing> {
    let lines = match &fault {
        Some(Fault::CutWatch { after }) => Some(*after),
        _ => None,
    };
    response.map(|content| match (content, fault) {
        (Content::Whole(body), Some(Fault::Half)) => Outgoing::Half(body.slice(..body.len() / 2)),
        (Content::Whole(body), _) => Outgoing::Whole(body),
        (Content::Watch(watch), _) => Outgoing::watch(Telling::new(shared.clone(), watch, lines)),
    })
}
