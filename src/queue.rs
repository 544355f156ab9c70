//! The work queue: which key is next, and when.
//!
//! It is the queue that Kubernetes controllers use, without a clock, a thread or a lock of its
//! own. A key is queued at most once. One that is added while it is being processed is processed
//! again afterwards, so no two workers ever hold the same key. Failures back off per key, and all
//! of them together pass a token bucket.
//!
//! Every time is a [`Duration`] since an origin that the caller chooses once for this queue: the
//! start of the process, or of a simulation. It should not run backwards; where it does, keys are
//! late, and nothing else happens.
//!
//! Whoever drives it, with threads, tasks or a plain loop,
//!
//! 1. calls [`Queue::add`] for each key that an event concerns;
//! 2. lets each free worker [`take`](Queue::take) a key, work on it, and [`finish`](Queue::finish)
//!    it with what that work ended in;
//! 3. where there was none to take, sleeps until [`Queue::next_due`], an addition, or an end.
//!
//! ```
//! use apibinding::queue::{Next, Queue};
//! use std::time::Duration;
//!
//! let ms = Duration::from_millis;
//! let mut queue = Queue::default();
//! for key in ["a", "b", "a"] {
//!     queue.add(key);
//! }
//!
//! assert_eq!(queue.take(ms(0)), Some("a"));
//! queue.add("a"); // news of it, while a worker has it
//! assert_eq!(queue.take(ms(0)), Some("b"));
//! assert_eq!(queue.take(ms(0)), None);
//!
//! queue.finish(&"a", Next::Forget, ms(1));
//! assert_eq!(queue.take(ms(1)), Some("a"));
//!
//! queue.finish(&"b", Next::Backoff { at_least: Duration::ZERO }, ms(1));
//! assert_eq!(queue.take(ms(1)), None);
//! assert_eq!(queue.next_due(), Some(ms(6)));
//! assert_eq!(queue.take(ms(6)), Some("b"));
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// How long a key that failed waits. The default has client-go's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The wait after the first failure in a row; it doubles with each further one.
    pub base: Duration,
    /// Where the doubling ends.
    pub max: Duration,
    /// What the failures of all keys share; `None` for no such limit.
    pub bucket: Option<Bucket>,
}

impl Default for Config {
    /// 5 ms, doubling to 1000 s; all together 10 a second after a burst of 100.
    fn default() -> Self {
        Self {
            base: Duration::from_millis(5),
            max: Duration::from_secs(1000),
            bucket: Some(Bucket { every: Duration::from_millis(100), burst: 100 }),
        }
    }
}

impl Config {
    fn backoff(&self, failures: u32) -> Duration {
        // 94 doublings of a nanosecond are longer than any Duration.
        (0..failures.min(94)).fold(self.base, |delay, _| delay.saturating_mul(2)).min(self.max)
    }
}

/// A token bucket: full at first, a token for each failure. Where there is none left, the failure
/// waits for one that is still to come, and the next failure for the one after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// How long it takes for one token to come back.
    pub every: Duration,
    /// How many tokens the bucket holds.
    pub burst: u32,
}

impl Bucket {
    /// Takes a token out of the bucket that will be full again at `full_at`, and says when that
    /// token is there. The one instant is all that there is to remember of a bucket.
    fn reserve(&self, full_at: &mut Duration, now: Duration) -> Duration {
        *full_at = (*full_at).max(now).saturating_add(self.every);
        let fill = self.every.saturating_mul(self.burst);
        full_at.saturating_sub(fill).max(now)
    }
}

/// What comes after the processing of a key: the four ends of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Next {
    /// It succeeded: its failures are forgotten.
    Forget,
    /// It succeeded, and there is more to do at once: behind the keys that are queued already.
    Now,
    /// It succeeded, and there may be more to do at this time, on the queue's clock.
    At(Duration),
    /// It failed: it waits as long as its back-off and the bucket say.
    Backoff {
        /// Not sooner than this from now: what a server asked for with `Retry-After`. It may be
        /// longer than [`Config::max`]. Zero where nobody asked.
        at_least: Duration,
    },
}

/// A queue of keys. See the [module](self) for how to drive it.
///
/// The order is that of adding, and for keys that waited that of their times, then of adding: it
/// never depends on hashing. Each operation costs O(log n) in the keys that the queue knows, but for
/// [`forget_all_backoffs`](Self::forget_all_backoffs), which goes through those that wait.
#[derive(Clone, Debug)]
pub struct Queue<K> {
    config: Config,
    ready: VecDeque<K>,
    /// Of each key that is ready or being processed.
    states: BTreeMap<K, State>,
    /// Of each key that waits.
    turns: BTreeMap<K, Turn>,
    schedule: BTreeMap<Turn, Wait<K>>,
    failures: BTreeMap<K, u32>,
    bucket_full_at: Duration,
    serial: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Processing,
    /// Being processed, and added since.
    Again,
}

/// When, and which of those at that time.
type Turn = (Duration, u64);

#[derive(Clone, Debug)]
struct Wait<K> {
    key: K,
    /// It waits because it failed.
    limited: bool,
}

impl<K: Ord + Clone> Default for Queue<K> {
    fn default() -> Self {
        Self::new(Config::default())
    }
}

impl<K: Ord + Clone> Queue<K> {
    /// An empty queue.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            ready: VecDeque::new(),
            states: BTreeMap::new(),
            turns: BTreeMap::new(),
            schedule: BTreeMap::new(),
            failures: BTreeMap::new(),
            bucket_full_at: Duration::ZERO,
            serial: 0,
        }
    }

    /// Queues a key, unless it is queued; one that is being processed is queued when that is done.
    ///
    /// Neither back-off nor a wait holds it up: something happened, so it is worth a look. A wait
    /// that the key is in goes on, since it may be for something else.
    pub fn add(&mut self, key: K) {
        match self.states.get_mut(&key) {
            Some(state @ State::Processing) => *state = State::Again,
            Some(State::Ready | State::Again) => {}
            None => {
                self.states.insert(key.clone(), State::Ready);
                self.ready.push_back(key);
            }
        }
    }

    /// Adds a key once it is `at`. A key waits for one time only, the earliest.
    pub fn add_at(&mut self, key: K, at: Duration) {
        self.wait(key, at, Duration::ZERO, false);
    }

    /// Counts a failure of the key, and adds it when its back-off is over, a token of the bucket is
    /// there, and `at_least` has passed.
    ///
    /// If it waits for an earlier time already, that stands, but for `at_least`: a server that asked
    /// to be left alone is.
    pub fn add_rate_limited(&mut self, key: K, at_least: Duration, now: Duration) {
        let failures = self.failures.entry(key.clone()).or_default();
        let backoff = self.config.backoff(*failures);
        *failures = failures.saturating_add(1);

        let token = match &self.config.bucket {
            Some(bucket) => bucket.reserve(&mut self.bucket_full_at, now),
            None => now,
        };
        let at = now.saturating_add(backoff).max(token);
        self.wait(key, at, now.saturating_add(at_least), true);
    }

    /// Forgets the failures of a key: the next one is its first. A wait that it is in goes on.
    pub fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// Forgets all failures, and adds at once every key that waits for one; the tokens that they
    /// wait for go back into the bucket.
    ///
    /// For when a server that was gone is back: what failed for want of it need not wait any more.
    pub fn forget_all_backoffs(&mut self) {
        self.failures.clear();
        self.bucket_full_at = Duration::ZERO;

        for (turn, wait) in std::mem::take(&mut self.schedule) {
            if wait.limited {
                self.turns.remove(&wait.key);
                self.add(wait.key);
            } else {
                self.schedule.insert(turn, wait);
            }
        }
    }

    /// Forgets all keys, failures and waits, but for the keys that are being processed.
    ///
    /// For who stops working, and may begin anew before those are done.
    pub fn clear(&mut self) {
        self.ready.clear();
        self.turns.clear();
        self.schedule.clear();
        self.failures.clear();
        self.bucket_full_at = Duration::ZERO;
        self.states.retain(|_, state| {
            let is_taken = *state != State::Ready;
            *state = State::Processing;
            is_taken
        });
    }

    /// The key to process next, for one worker alone until it is [`done`](Self::done) or
    /// [finished](Self::finish). Keys that have waited long enough join the queue before, behind
    /// those that are in it.
    #[must_use = "a key that is taken stays taken until it is finished"]
    pub fn take(&mut self, now: Duration) -> Option<K> {
        while let Some(first) = self.schedule.first_entry() {
            if first.key().0 > now {
                break;
            }
            let key = first.remove().key;
            self.turns.remove(&key);
            self.add(key);
        }

        let key = self.ready.pop_front()?;
        self.states.insert(key.clone(), State::Processing);
        Some(key)
    }

    /// Ends the processing of a key, and queues it if it was added meanwhile. Does nothing for a
    /// key that nobody took.
    ///
    /// Most want [`finish`](Self::finish), which also says what comes next.
    pub fn done(&mut self, key: &K) {
        match self.states.get_mut(key) {
            Some(State::Processing) => {
                self.states.remove(key);
            }
            Some(state @ State::Again) => {
                *state = State::Ready;
                self.ready.push_back(key.clone());
            }
            Some(State::Ready) | None => {}
        }
    }

    /// Ends the processing of a key with what comes next. Whatever that is, a key that was added
    /// meanwhile is queued at once.
    pub fn finish(&mut self, key: &K, next: Next, now: Duration) {
        if !matches!(next, Next::Backoff { .. }) {
            self.forget(key);
        }
        match next {
            Next::Forget => {}
            Next::Now => self.add(key.clone()),
            Next::At(at) => self.add_at(key.clone(), at),
            Next::Backoff { at_least } => self.add_rate_limited(key.clone(), at_least, now),
        }
        self.done(key);
    }

    /// When the first of the keys that wait is due. Where [`take`](Self::take) gave nothing, it
    /// gives nothing until then, unless a key is added or finished.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        self.schedule.keys().next().map(|(at, _)| *at)
    }

    /// How many keys are queued: neither waiting nor being processed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ready.len()
    }

    /// Whether no key is queued; some may wait or be processed all the same.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// How many keys wait for their time. One that is added besides counts on both sides.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.turns.len()
    }

    /// How many keys are being processed.
    #[must_use]
    pub fn processing(&self) -> usize {
        self.states.len().saturating_sub(self.ready.len())
    }

    /// How often the key has failed since it last succeeded.
    #[must_use]
    pub fn failures(&self, key: &K) -> u32 {
        self.failures.get(key).copied().unwrap_or_default()
    }

    /// Lets the key wait until `at`, or as it does if that is sooner, but not sooner than `floor`.
    fn wait(&mut self, key: K, at: Duration, floor: Duration, limited: bool) {
        let mut at = at.max(floor);
        if let Some(turn) = self.turns.get(&key) {
            at = turn.0.clamp(floor, at);
            if turn.0 == at {
                return; // and keeps its place among those of that time
            }
            self.schedule.remove(turn);
        }

        let turn = (at, self.serial);
        self.serial = self.serial.wrapping_add(1);
        self.turns.insert(key.clone(), turn);
        self.schedule.insert(turn, Wait { key, limited });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NONE: Duration = Duration::ZERO;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn dues<K>(queue: &Queue<K>) -> Vec<Duration> {
        queue.schedule.keys().map(|(at, _)| *at).collect()
    }

    #[test]
    fn failures_of_a_key_double_its_wait_up_to_the_maximum() {
        let mut queue = Queue::default();
        let mut waits = Vec::new();
        for second in 0..20 {
            let now = Duration::from_secs(second);
            queue.add_rate_limited('a', NONE, now);
            waits.push(queue.next_due().unwrap().abs_diff(now).as_millis());
            assert_eq!(queue.take(Duration::MAX), Some('a'));
            queue.done(&'a');
        }
        assert_eq!(waits[..4], [5, 10, 20, 40]);
        assert_eq!(waits[17..], [655_360, 1_000_000, 1_000_000]);
        assert_eq!(queue.failures(&'a'), 20);

        queue.forget(&'a');
        queue.add_rate_limited('a', NONE, ms(20_000));
        assert_eq!(queue.next_due(), Some(ms(20_005)));
    }

    #[test]
    fn a_queue_that_is_cleared_knows_what_is_being_processed() {
        let mut queue = Queue::default();
        ["a", "b", "c"].into_iter().for_each(|key| queue.add(key));
        assert_eq!((queue.take(NONE), queue.take(NONE)), (Some("a"), Some("b")));
        queue.add("b");
        queue.add_rate_limited("d", NONE, NONE);
        queue.clear();
        assert_eq!((queue.len(), queue.waiting(), queue.processing(), queue.failures(&"d")), (0, 0, 2, 0));

        queue.add("a");
        assert_eq!(queue.take(Duration::MAX), None); // until the first is done with it
        queue.done(&"a");
        queue.done(&"b"); // which was added before the queue was cleared
        assert_eq!((queue.take(Duration::MAX), queue.take(Duration::MAX)), (Some("a"), None));
    }

    #[test]
    fn failures_of_all_keys_share_the_bucket() {
        let mut queue = Queue::default();
        for key in 0..103 {
            queue.add_rate_limited(key, NONE, NONE);
        }
        assert_eq!(dues(&queue)[..100], [ms(5); 100]);
        assert_eq!(dues(&queue)[100..], [ms(100), ms(200), ms(300)]);

        // A second brings ten tokens: three for the debt, seven to spend.
        for key in 200..208 {
            queue.add_rate_limited(key, NONE, ms(1000));
        }
        assert_eq!(dues(&queue)[103..110], [ms(1005); 7]);
        assert_eq!(dues(&queue)[110..], [ms(1100)]);
    }

    #[test]
    fn a_server_that_asked_to_be_left_alone_is() {
        let mut queue = Queue::default();
        queue.add_at('a', ms(1));
        queue.add_rate_limited('a', ms(7000), ms(10));
        assert_eq!(queue.next_due(), Some(ms(7010)));
        queue.add_rate_limited('a', NONE, ms(10));
        assert_eq!(queue.next_due(), Some(ms(20)), "the earliest wins");
    }

    #[test]
    fn forgetting_all_backoffs_wakes_what_failed_and_nothing_else() {
        let mut queue = Queue::default();
        queue.add_at('t', ms(50));
        for _ in 0..200 {
            queue.add_rate_limited('a', NONE, NONE);
        }
        queue.add_rate_limited('b', ms(60_000), NONE);
        queue.forget_all_backoffs();
        assert_eq!((queue.take(NONE), queue.take(NONE)), (Some('a'), Some('b')));
        assert_eq!((queue.take(NONE), queue.waiting()), (None, 1));
        assert_eq!(queue.next_due(), Some(ms(50)));

        queue.finish(&'b', Next::Backoff { at_least: NONE }, NONE);
        assert_eq!(queue.next_due(), Some(ms(5)), "the bucket is full again");
    }

    #[test]
    fn the_ends_of_a_pass() {
        let mut queue = Queue::default();
        for (next, failures, due, again) in [
            (Next::Backoff { at_least: NONE }, 1, Some(ms(15)), false),
            (Next::Now, 0, None, true),
            (Next::Backoff { at_least: ms(9) }, 1, Some(ms(19)), false),
            (Next::At(ms(30)), 0, Some(ms(30)), false),
            (Next::Forget, 0, None, false),
        ] {
            queue.add('a');
            assert_eq!(queue.take(Duration::MAX), Some('a'));
            queue.finish(&'a', next, ms(10));
            let seen = (queue.failures(&'a'), queue.next_due(), !queue.is_empty());
            assert_eq!(seen, (failures, due, again), "{next:?}");
        }
    }

    #[test]
    fn a_key_that_nobody_took_cannot_be_done() {
        let mut queue = Queue::default();
        queue.done(&'a');
        queue.add('a');
        assert_eq!(queue.take(NONE), Some('a'));
        queue.add('a');
        queue.done(&'a');
        queue.done(&'a');
        assert_eq!((queue.len(), queue.processing()), (1, 0));
    }

    #[test]
    fn no_time_is_too_long() {
        let max = Duration::MAX;
        let (every, burst) = (max, u32::MAX);
        let bucket = Some(Bucket { every, burst });
        let base = Duration::from_nanos(1);
        let config = Config { base, max, bucket };
        assert_eq!(config.backoff(40), Duration::from_nanos(1 << 40));
        assert_eq!(config.backoff(u32::MAX), max);

        let mut queue = Queue::new(config);
        queue.add_rate_limited('a', max, max);
        queue.add_at('b', max);
        assert_eq!((queue.take(max), queue.take(max)), (Some('a'), Some('b')));
    }

    #[derive(Clone, Debug)]
    enum Op {
        Add(u8),
        AddAt(u8, Duration),
        Take(Duration),
        Finish(usize, Next),
    }

    fn op() -> impl Strategy<Value = Op> {
        let time = || (0..200u64).prop_map(ms);
        let next = prop_oneof![
            Just(Next::Forget),
            Just(Next::Now),
            time().prop_map(Next::At),
            time().prop_map(|at_least| Next::Backoff { at_least }),
        ];
        prop_oneof![
            (0..4u8).prop_map(Op::Add),
            (0..4u8, time()).prop_map(|(key, at)| Op::AddAt(key, at)),
            (0..9u64).prop_map(|later| Op::Take(ms(later))),
            (0..2usize, next).prop_map(|(worker, next)| Op::Finish(worker, next)),
        ]
    }

    /// The same queue in plain lists, each in order of adding, for failures that wait 5 ms.
    #[derive(Default)]
    struct Model {
        ready: Vec<u8>,
        processing: Vec<u8>,
        again: Vec<u8>,
        waiting: Vec<(Duration, u8)>,
    }

    impl Model {
        fn add(&mut self, key: u8) {
            let processing = self.processing.contains(&key);
            let list = if processing { &mut self.again } else { &mut self.ready };
            if !list.contains(&key) {
                list.push(key);
            }
        }

        fn wait(&mut self, key: u8, at: Duration, floor: Duration) {
            let old = self.waiting.iter().find(|(_, k)| *k == key).map(|w| w.0);
            let at = old.unwrap_or(at).min(at).max(floor);
            if old != Some(at) {
                self.waiting.retain(|(_, k)| *k != key);
                self.waiting.push((at, key));
            }
        }

        fn take(&mut self, now: Duration) -> Option<u8> {
            self.waiting.sort_by_key(|(at, _)| *at); // stable
            let due = self.waiting.partition_point(|(at, _)| *at <= now);
            for (_, key) in self.waiting.drain(..due).collect::<Vec<_>>() {
                self.add(key);
            }
            let key = (!self.ready.is_empty()).then(|| self.ready.remove(0))?;
            assert!(!self.processing.contains(&key), "two workers on {key}");
            self.processing.push(key);
            Some(key)
        }

        fn finish(&mut self, key: u8, next: Next, now: Duration) {
            match next {
                Next::Forget => {}
                Next::Now => self.add(key),
                Next::At(at) => self.wait(key, at, NONE),
                Next::Backoff { at_least } => self.wait(key, now + ms(5), now + at_least),
            }
            self.processing.retain(|k| *k != key);
            if let Some(i) = self.again.iter().position(|k| *k == key) {
                self.add(self.again[i]);
                self.again.remove(i);
            }
        }
    }

    proptest! {
        #[test]
        fn is_like_the_model_and_loses_nothing(ops in prop::collection::vec(op(), 0..120)) {
            let (base, max, bucket) = (ms(5), ms(5), None);
            let mut queue = Queue::new(Config { base, max, bucket });
            let mut model = Model::default();
            let mut owed: Vec<u8> = Vec::new(); // added, and not taken since
            let mut now = NONE;

            for op in ops {
                match op {
                    Op::Add(key) => {
                        queue.add(key);
                        model.add(key);
                        owed.push(key);
                    }
                    Op::AddAt(key, at) => {
                        queue.add_at(key, at);
                        model.wait(key, at, NONE);
                        owed.push(key);
                    }
                    Op::Take(later) => {
                        now += later;
                        let key = queue.take(now);
                        assert_eq!(key, model.take(now));
                        owed.retain(|k| Some(*k) != key);
                    }
                    Op::Finish(worker, next) => {
                        let Some(key) = model.processing.get(worker).copied() else { continue };
                        queue.finish(&key, next, now);
                        model.finish(key, next, now);
                        if next != Next::Forget {
                            owed.push(key);
                        }
                    }
                }
                assert_eq!(queue.len(), model.ready.len());
                assert_eq!(queue.waiting(), model.waiting.len());
                assert_eq!(queue.processing(), model.processing.len());
                assert_eq!(queue.next_due(), model.waiting.iter().map(|w| w.0).min());
            }

            for key in model.processing {
                queue.done(&key);
            }
            while let Some(key) = queue.take(Duration::MAX) {
                owed.retain(|k| *k != key);
                queue.done(&key);
            }
            assert!(owed.is_empty(), "lost {owed:?}");
            assert!(queue.states.is_empty() && queue.turns.is_empty());
        }
    }
}
