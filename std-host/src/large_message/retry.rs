//! How often something is tried, and how long all of it may take.
//!
//! As Kafka's `ExponentialBackoff`: the delay before a retry is twice the one before it, times
//! a random factor from 0.8 to 1.2, and then brought to between the first and the longest
//! delay. Every attempt has the same limit of time.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// Furthest that jitter goes from a delay, up or down: `CommonClientConfigs.RETRY_BACKOFF_JITTER`.
const JITTER: f64 = 0.2;

/// How often and how long it is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Longest time of one attempt.
    pub timeout: Duration,
    /// Attempts after the first.
    pub retries: u32,
    /// Delay before the first retry, and the shortest of all.
    pub delay: Duration,
    /// Longest delay before a retry.
    pub max_backoff: Duration,
    /// Longest time of all attempts and delays together, if there is a limit.
    pub deadline: Option<Duration>,
}

impl RetryPolicy {
    /// Delay before retry number `retry`, of which the first is 0. `random` from 0 to 1 is its
    /// jitter: 0 is the shortest, 1 the longest.
    #[must_use]
    pub fn backoff(&self, retry: u32, random: f64) -> Duration {
        let factor = 1.0 - JITTER + 2.0 * JITTER * random;
        // 2 to the power of more than 1023 is infinite, and so the longest delay.
        let exponent = i32::try_from(retry).unwrap_or(i32::MAX);
        let seconds = self.delay.as_secs_f64() * 2f64.powi(exponent) * factor;
        let longest = self.max_backoff.max(self.delay);
        Duration::try_from_secs_f64(seconds).unwrap_or(longest).clamp(self.delay, longest)
    }

    /// The longest that all delays together can be.
    #[must_use]
    pub fn all_backoffs(&self) -> Duration {
        let longest = self.max_backoff.max(self.delay);
        let mut sum = Duration::ZERO;
        for retry in 0..self.retries {
            let backoff = self.backoff(retry, 1.0);
            sum = sum.saturating_add(backoff);
            // None is shorter from here on, however many there are. A delay of 0 stays 0.
            if backoff == longest || backoff.is_zero() {
                return sum.saturating_add(backoff.saturating_mul(self.retries - retry - 1));
            }
        }
        sum
    }

    /// The longest that all attempts together can take, delays not counted.
    #[must_use]
    pub const fn all_timeouts(&self) -> Duration {
        self.timeout.saturating_mul(self.retries).saturating_add(self.timeout)
    }

    /// The longest that all of it can take: every attempt until its limit of time, every
    /// delay with the highest jitter, and no longer than the deadline.
    #[must_use]
    pub fn worst_case(&self) -> Duration {
        let sum = self.all_timeouts().saturating_add(self.all_backoffs());
        self.deadline.map_or(sum, |deadline| sum.min(deadline))
    }
}

/// Why an attempt failed.
#[derive(Debug)]
pub(super) struct Failure<E> {
    pub(super) error: E,
    /// Whether another attempt may do better.
    pub(super) retryable: bool,
}

/// How it ended after all.
#[derive(Debug)]
pub(super) struct Exhausted<E> {
    /// What the last attempt failed with, `None` if with its limit of time.
    pub(super) error: Option<E>,
    /// How many attempts there were.
    pub(super) attempts: u32,
    /// How long all of it took.
    pub(super) elapsed: Duration,
    /// Whether the deadline has kept it from further attempts.
    pub(super) cut: bool,
}

/// Calls `attempt` until it succeeds, fails for good, or `policy` has no more attempts; `random`
/// gives the jitter, from 0 to 1.
///
/// An attempt that reaches its limit of time is dropped, which ends what it waits for. Time is
/// tokio's.
pub(super) async fn run<T, E, F: Future<Output = Result<T, Failure<E>>>>(
    policy: &RetryPolicy,
    random: &(dyn Fn() -> f64 + Send + Sync),
    mut attempt: impl FnMut() -> F,
) -> Result<T, Exhausted<E>> {
    let start = Instant::now();
    let left = || policy.deadline.map_or(Duration::MAX, |all| all.saturating_sub(start.elapsed()));
    let mut retry = 0;
    loop {
        let outcome = timeout(policy.timeout.min(left()), attempt()).await;
        let (error, retryable) = match outcome {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(failure)) => (Some(failure.error), failure.retryable),
            Err(_) => (None, true),
        };
        let more = retryable && retry < policy.retries;
        let backoff = policy.backoff(retry, random());
        // An attempt without time for it would be one more load on a store in trouble.
        let cut = more && backoff >= left();
        if !more || cut {
            let attempts = retry + 1;
            return Err(Exhausted { error, attempts, elapsed: start.elapsed(), cut });
        }
        sleep(backoff).await;
        retry += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Those of KIP-1159.
    const DEFAULTS: RetryPolicy = RetryPolicy {
        timeout: Duration::from_secs(10),
        retries: 5,
        delay: Duration::from_millis(100),
        max_backoff: Duration::from_secs(10),
        deadline: None,
    };

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn delays() {
        let all = |random| [0, 1, 2, 6, 7, 4000].map(|retry| DEFAULTS.backoff(retry, random));
        assert_eq!(all(0.5), [ms(100), ms(200), ms(400), ms(6400), ms(10_000), ms(10_000)]);
        assert_eq!(all(1.0), [ms(120), ms(240), ms(480), ms(7680), ms(10_000), ms(10_000)]);
        // Not below the first one.
        assert_eq!(all(0.0), [ms(100), ms(160), ms(320), ms(5120), ms(10_000), ms(10_000)]);
        assert_eq!(DEFAULTS.backoff(u32::MAX, 0.0), ms(10_000));
    }

    #[test]
    fn worst_cases() {
        assert_eq!(DEFAULTS.all_timeouts(), ms(60_000));
        assert_eq!(DEFAULTS.all_backoffs(), ms(3_720));
        assert_eq!(DEFAULTS.worst_case(), ms(63_720));
        let with = |change: fn(&mut RetryPolicy)| {
            let mut policy = DEFAULTS;
            change(&mut policy);
            policy.worst_case()
        };
        assert_eq!(with(|policy| policy.retries = 0), ms(10_000));
        assert_eq!(with(|policy| policy.deadline = Some(ms(60_000))), ms(60_000));
        assert_eq!(with(|policy| policy.deadline = Some(ms(70_000))), ms(63_720));
        assert_eq!(with(|policy| policy.delay = Duration::ZERO), ms(60_000));
        // 120 + 240 + 480 + 960 + 1920 + 3840 + 7680, and 10 s each from then on.
        assert_eq!(with(|policy| policy.retries = 1007), ms(10_080_000 + 15_240 + 10_000_000));
        assert!(with(|policy| policy.retries = u32::MAX) > Duration::from_secs(1 << 32));
    }

    /// Runs with `outcomes` of the attempts, and says how it went: attempts and time.
    async fn run_with(
        policy: RetryPolicy,
        random: f64,
        outcome: impl Fn(u32) -> Option<Result<(), Failure<&'static str>>>,
    ) -> (Result<(), Exhausted<&'static str>>, u32, Duration) {
        let (calls, start) = (Cell::new(0), Instant::now());
        let random = move || random;
        let end = run(&policy, &random, || {
            let call = calls.get();
            calls.set(call + 1);
            let outcome = outcome(call);
            async move {
                match outcome {
                    Some(outcome) => outcome,
                    None => std::future::pending().await,
                }
            }
        });
        (end.await, calls.get(), start.elapsed())
    }

    const fn fail(retryable: bool) -> Option<Result<(), Failure<&'static str>>> {
        Some(Err(Failure { error: "no", retryable }))
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_are_counted() {
        for failures in 0..=5 {
            let outcome = |call| if call < failures { fail(true) } else { Some(Ok(())) };
            let (end, calls, time) = run_with(DEFAULTS, 0.5, outcome).await;
            assert!(end.is_ok());
            assert_eq!(calls, failures + 1);
            assert_eq!(time, ms((0..failures).map(|retry| 100 << retry).sum()));
        }
        let (end, calls, _) = run_with(DEFAULTS, 0.5, |_| fail(true)).await;
        let end = end.unwrap_err();
        assert_eq!((end.error, end.attempts, end.cut, calls), (Some("no"), 6, false, 6));
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_do_better_is_not_tried_again() {
        let (end, calls, time) = run_with(DEFAULTS, 0.5, |_| fail(false)).await;
        assert_eq!((end.unwrap_err().attempts, calls, time), (1, 1, Duration::ZERO));
    }

    /// Nothing ever answers: the worst case, to the millisecond.
    #[tokio::test(start_paused = true)]
    async fn the_bound_is_reached_and_kept() {
        let (end, calls, time) = run_with(DEFAULTS, 1.0, |_| None).await;
        let end = end.unwrap_err();
        assert_eq!((end.error, calls, end.cut), (None, 6, false));
        // Tokio's timers are exact to the millisecond, and round up.
        assert!((ms(63_720)..=ms(63_731)).contains(&time), "{time:?}");
    }

    /// The last attempt gets what is left, and none begins without any.
    #[tokio::test(start_paused = true)]
    async fn the_deadline_cuts() {
        let policy = RetryPolicy { deadline: Some(ms(60_000)), ..DEFAULTS };
        let (end, calls, time) = run_with(policy, 0.5, |_| None).await;
        assert_eq!((end.unwrap_err().cut, calls), (false, 6));
        assert!((ms(60_000)..=ms(60_002)).contains(&time), "{time:?}");

        let policy = RetryPolicy { deadline: Some(ms(10_050)), ..DEFAULTS };
        let (end, calls, time) = run_with(policy, 0.5, |_| None).await;
        let end = end.unwrap_err();
        assert_eq!((end.cut, end.attempts, calls), (true, 1, 1));
        assert!((ms(10_000)..=ms(10_002)).contains(&time), "{time:?}");
    }
}
