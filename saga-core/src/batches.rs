//! Questions of many callers that are answered together.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, oneshot};

/// Questions that wait for the answers to those before them, and are then answered together. So the work on each begins after
/// it was asked, and a question that comes alone waits for nothing. A caller whose question waits works for all that wait.
#[derive(Debug)]
pub struct Batches<Q, A> {
    /// The most questions that are answered together.
    questions_max: usize,
    waiting: Arc<Mutex<Waiting<Q, A>>>,
    /// As many permits as there may be batches at once.
    turns: Arc<Semaphore>,
}

/// The questions that are in no batch yet, in the order of their numbers.
#[derive(Debug)]
struct Waiting<Q, A> {
    questions: VecDeque<Waiter<Q, A>>,
    next_number: u64,
}

#[derive(Debug)]
struct Waiter<Q, A> {
    number: u64,
    question: Q,
    answer: oneshot::Sender<A>,
}

/// A clone shares with it.
impl<Q, A> Clone for Batches<Q, A> {
    fn clone(&self) -> Self {
        let (waiting, turns) = (Arc::clone(&self.waiting), Arc::clone(&self.turns));
        Self { questions_max: self.questions_max, waiting, turns }
    }
}

impl<Q: Clone, A> Batches<Q, A> {
    /// Batches of at most `questions_max` questions, and at most `batches_max` of them at once.
    pub fn new(questions_max: usize, batches_max: usize) -> Self {
        let waiting = Waiting { questions: VecDeque::new(), next_number: 0 };
        Self { questions_max, waiting: Arc::new(Mutex::new(waiting)), turns: Arc::new(Semaphore::new(batches_max)) }
    }

    /// Asks, and waits for the answer. `work` has an answer to each question, in their order.
    ///
    /// # Cancel safety
    /// If a caller is dropped that works for others, they ask again: the work on a question may be done twice.
    pub async fn ask<F: Future<Output = Vec<A>>>(&self, question: Q, work: impl Fn(Vec<Q>) -> F) -> A {
        loop {
            let (answer, mut answered) = oneshot::channel();
            let number = self.enter(question.clone(), answer);
            // A question that comes alone is answered before anything waits for the answer: nothing is woken for it.
            if let Ok(_turn) = self.turns.try_acquire() {
                self.answer_until(number, &work).await;
            } else {
                tokio::select! {
                    biased;
                    answer = &mut answered => match answer {
                        Ok(answer) => return answer,
                        Err(_) => continue,
                    },
                    _turn = self.turns.acquire() => {
                        // The callers that were answered just now ask first, so that their questions are in this batch.
                        tokio::task::yield_now().await;
                        self.answer_until(number, &work).await;
                    }
                }
            }
            if let Ok(answer) = answered.await {
                return answer;
            }
            // The caller that worked for this one was dropped.
        }
    }

    fn enter(&self, question: Q, answer: oneshot::Sender<A>) -> u64 {
        let mut waiting = self.waiting();
        let number = waiting.next_number;
        waiting.next_number += 1;
        waiting.questions.push_back(Waiter { number, question, answer });
        number
    }

    /// Works until the question of this number is in a batch, its own or another caller's.
    async fn answer_until<F: Future<Output = Vec<A>>>(&self, number: u64, work: impl Fn(Vec<Q>) -> F) {
        while let Some(batch) = self.next_until(number) {
            let (questions, callers): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
            for (caller, answer) in callers.into_iter().zip(work(questions).await) {
                // The caller may be gone.
                _ = caller.send(answer);
            }
        }
    }

    /// The next questions, in the order in which they came; none if that of this number waits no more. Those of callers that
    /// are gone are left out.
    fn next_until(&self, number: u64) -> Option<Vec<(Q, oneshot::Sender<A>)>> {
        let mut waiting = self.waiting();
        let questions = &mut waiting.questions;
        questions.retain(|waiter| !waiter.answer.is_closed());
        questions.front().filter(|first| first.number <= number)?;
        let count = questions.len().min(self.questions_max);
        Some(questions.drain(..count).map(|waiter| (waiter.question, waiter.answer)).collect())
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting<Q, A>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::{Context, Poll, Wake, Waker};

    use super::*;

    /// Lets a caller come so far as it can without another one: it yields once before it works for others.
    async fn poll<F: Future + Unpin>(caller: &mut F) {
        for _ in 0..2 {
            tokio::select! {
                biased;
                _ = &mut *caller => panic!("it was answered"),
                () = ready(()) => {}
            }
        }
    }

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct Wakes(AtomicU32);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn double(questions: Vec<u32>) -> impl Future<Output = Vec<u32>> {
        ready(questions.into_iter().map(|question| 2 * question).collect())
    }

    /// A task that is woken while it runs has another thread of the runtime woken up.
    #[test]
    fn a_question_that_comes_alone_wakes_nothing() {
        let (batches, woken) = (Batches::new(8, 1), Arc::new(Wakes::default()));
        let (waker, mut caller) = (Waker::from(Arc::clone(&woken)), Box::pin(batches.ask(1, double)));
        assert_eq!(caller.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Ready(2));
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn what_is_asked_during_the_work_is_answered_together() {
        let (batches, works) = (Batches::new(2, 1), Mutex::new(Vec::new()));
        let ask = |question| {
            batches.ask(question, |questions: Vec<u32>| {
                works.lock().unwrap().push(questions.clone());
                async {
                    tokio::task::yield_now().await;
                    double(questions).await
                }
            })
        };
        assert_eq!(tokio::join!(ask(1), ask(2), ask(3), ask(4)), (2, 4, 6, 8));
        assert_eq!(*works.lock().unwrap(), [vec![1], vec![2, 3], vec![4]]);
    }

    #[tokio::test]
    async fn so_many_batches_are_worked_on_at_once() {
        let (batches, ends) = (Batches::new(1, 2), Mutex::new(Vec::new()));
        let ask = |question| {
            Box::pin(batches.ask(question, |questions: Vec<u32>| {
                let (end, ended) = oneshot::channel::<()>();
                ends.lock().unwrap().push((questions.clone(), end));
                async {
                    ended.await.unwrap();
                    double(questions).await
                }
            }))
        };
        let end = |place: usize| {
            let (questions, end) = ends.lock().unwrap().remove(place);
            end.send(()).unwrap();
            questions
        };
        let (mut one, mut two, mut three) = (ask(1), ask(2), ask(3));
        poll(&mut one).await;
        poll(&mut two).await;
        poll(&mut three).await;
        assert_eq!(ends.lock().unwrap().len(), 2, "the third waits for a turn");
        assert_eq!(end(1), [2]);
        assert_eq!(two.await, 4, "the second waits for no other");
        poll(&mut three).await;
        assert_eq!(end(1), [3]);
        assert_eq!(three.await, 6);
        assert_eq!(end(0), [1]);
        assert_eq!(one.await, 2);
    }

    #[tokio::test]
    async fn a_caller_works_no_longer_than_until_its_question_is_in_a_batch() {
        let batches = Batches::new(1, 1);
        let numbers = [1, 2, 3].map(|question| batches.enter(question, oneshot::channel::<u32>().0));
        assert!(batches.next_until(numbers[0]).is_none(), "the callers are gone");
        let (answer, _answered) = oneshot::channel::<u32>();
        let mine = batches.enter(4, answer);
        let (answer, _later) = oneshot::channel();
        batches.enter(5, answer);
        assert_eq!(batches.next_until(mine).unwrap()[0].0, 4);
        assert!(batches.next_until(mine).is_none(), "what waits now is for those callers");
    }

    #[tokio::test]
    async fn callers_ask_again_when_the_one_is_dropped_that_works_for_them() {
        let batches = Batches::new(8, 1);
        let (end, ended) = oneshot::channel::<()>();
        let ended = Mutex::new(Some(ended));
        let mut first = Box::pin(batches.ask(1, |questions| {
            let ended = ended.lock().unwrap().take().unwrap();
            async {
                ended.await.unwrap();
                double(questions).await
            }
        }));
        poll(&mut first).await;
        let mut gone = Box::pin(batches.ask(2, double));
        let mut second = Box::pin(batches.ask(3, |questions| {
            assert_eq!(questions, [3, 4], "the question of a caller that is gone is left out");
            pending()
        }));
        let mut third = Box::pin(batches.ask(4, double));
        poll(&mut gone).await;
        poll(&mut second).await;
        poll(&mut third).await;
        drop(gone);
        end.send(()).unwrap();
        assert_eq!(first.await, 2);
        poll(&mut second).await;
        drop(second);
        assert_eq!(third.await, 8);
    }
}
