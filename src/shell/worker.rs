//! Workers: each takes a key, and goes through plan, act, observe with it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::Hook;
use super::desk::{Desk, Told};
use super::executor::Executor;
use super::metrics;
use super::turns::Turns;
use crate::api::BindingKey;
use crate::effect::{Effect, Outcome, Retry};
use crate::pass::{Pass, Step};
use crate::reconcile::notes::Notes;
use crate::reconcile::plan;
use crate::reconcile::trace::Untraced;

#[derive(Clone)]
pub(super) struct Worker {
    pub desk: Arc<Desk>,
    pub executor: Executor,
    pub turns: Turns,
    pub hook: Option<Hook>,
    /// Nothing is written.
    pub is_dry: bool,
}

impl Worker {
    /// Works until it is told to stop; then it takes no new key.
    pub async fn run(self, stop: CancellationToken) {
        loop {
            let key = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                key = self.desk.next() => key,
            };
            let span = tracing::info_span!("binding", %key);
            let retry = if self.is_dry {
                span.in_scope(|| self.rehearse(&key));
                Some(Retry::Forget)
            } else {
                self.process(&key).instrument(span).await
            };
            self.desk.finish(&key, retry);
        }
    }

    /// `None`: given up, since another one leads now.
    async fn process(&self, key: &BindingKey) -> Option<Retry> {
        let mut pass = Pass::new(key.clone());
        let mut turn = None;
        loop {
            let effect = match pass.poll(&self.desk.view()) {
                Step::Done(retry) => return Some(retry),
                Step::Act(effect) => effect,
            };
            match &effect {
                Effect::PatchLogicalCluster(patch) if turn.is_none() => {
                    let (taken, has_waited) = self.turns.take(&patch.cluster).await;
                    turn = Some(taken);
                    if has_waited {
                        // Planned on locks that are others by now.
                        continue;
                    }
                }
                Effect::PatchLogicalCluster(_) => {}
                _ => turn = None,
            }
            if !self.desk.is_open() {
                return None;
            }
            let span = tracing::info_span!("effect", kind = metrics::name(&effect));
            let outcome = self.executor.execute(&effect).instrument(span).await;
            say(&effect, &outcome);
            if let Some(hook) = &self.hook {
                hook(key, &effect, &outcome);
            }
            self.desk.note(key, &effect, &outcome);
            self.desk.learn(pass.observe(outcome), Told::Answer);
        }
    }

    /// Says what it would do.
    fn rehearse(&self, key: &BindingKey) {
        let plan = plan(&self.desk.view(), key, &Notes::default(), &mut Untraced);
        for effect in plan.effects {
            tracing::info!(%effect, "would");
        }
    }
}

/// A line an effect.
fn say(effect: &Effect, outcome: &Outcome) {
    match outcome {
        Outcome::Done(_) => tracing::info!(%effect, "done"),
        outcome if effect.is_read() && outcome.has_reason("NotFound") => tracing::info!(%effect, "no"),
        outcome => tracing::info!(%effect, %outcome, "not done"),
    }
}
