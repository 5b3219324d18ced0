use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn pacing(text: &str) -> Pacing {
    text.parse().expect(text)
}

fn at(text: &str) -> Timestamp {
    text.parse().expect(text)
}

/// Runs `test` under a paced clock, with a minute of the machine's time to end in.
fn paced<F: Future<Output = ()> + Send + 'static>(text: &str, test: impl FnOnce(Clock, Pacer) -> F) {
    let runtime = Pacing::runtime().expect("a runtime");
    runtime.block_on(async {
        let (stop, stopped) = oneshot::channel::<()>();
        let (clock, pacer) = pacing(text).begin(async { drop(stopped.await) });
        tokio::spawn(test(clock, pacer)).await.expect("the test");
        drop(stop);
    });
}

/// Gives `answer` after so much of the machine's time, as somebody outside does.
#[expect(clippy::disallowed_methods, reason = "somebody outside has a thread")]
fn outside(after: Duration, answer: oneshot::Sender<&'static str>) {
    std::thread::spawn(move || {
        std::thread::park_timeout(after);
        let _ = answer.send("yes");
    });
}

#[test]
fn a_pacing_is_a_start_a_speed_or_both() {
    let start = at("2030-01-01T00:00:00Z");
    assert_eq!(pacing("2030-01-01T00:00:00Z"), Pacing { start: Some(start), speed: 1.0 });
    assert_eq!(pacing("2030-01-01T01:00:00+01:00,speed=60"), Pacing { start: Some(start), speed: 60.0 });
    assert_eq!(pacing("speed=0"), Pacing { start: None, speed: 0.0 });
    assert_eq!(pacing("speed=0.5, 2030-01-01T00:00:00Z"), Pacing { start: Some(start), speed: 0.5 });
    for (text, message) in [
        ("", "\"\" is no time in RFC 3339"),
        ("tomorrow", "\"tomorrow\" is no time in RFC 3339"),
        ("speed=fast", "\"fast\" is no speed"),
        ("speed=-1", "\"-1\" is no speed"),
        ("speed=NaN", "\"NaN\" is no speed"),
        ("speed=1e9", "\"1e9\" is no speed"),
        ("speed=1,speed=2", "has two speeds"),
        ("2030-01-01T00:00:00Z,2031-01-01T00:00:00Z", "has two starts"),
    ] {
        let refused = text.parse::<Pacing>().expect_err(text).to_string();
        assert!(refused.contains(message) && refused.contains("such as"), "{text}: {refused}");
    }
}

#[test]
fn time_stands_still_until_it_is_told_to_pass() {
    paced("2030-01-01T00:00:00Z,speed=0", |clock, pacer| async move {
        // Something is due in a second, and the runtime is idle.
        let due = tokio::spawn(tokio::time::sleep(Duration::from_secs(1)));
        let (answer, answered) = oneshot::channel();
        outside(Duration::from_millis(50), answer);
        assert_eq!(answered.await, Ok("yes"));
        assert_eq!(clock.now(), at("2030-01-01T00:00:00Z"));
        assert!(!due.is_finished());
        pacer.advance(DAY).await.expect("it is paced");
        assert!(due.is_finished());
        for _ in 0..100 {
            pacer.advance(Duration::from_secs(1)).await.expect("it is paced");
        }
        let passed = clock.now().duration_since(at("2030-01-02T00:01:40Z"));
        assert!(passed.as_nanos() <= 1_000_000, "it does not add up: {passed}");
    });
}

#[test]
fn what_falls_due_happens_in_its_order_and_with_what_comes_of_it() {
    paced("2030-01-01T00:00:00Z,speed=0", |clock, pacer| async move {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (hourly, followed) = (Arc::clone(&seen), Arc::clone(&seen));
        let (hours, mut passed) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            for _ in 0..24 {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                hourly.lock().push(clock.now());
                let _ = hours.send(());
            }
        });
        tokio::spawn(async move {
            while passed.recv().await.is_some() {
                tokio::task::yield_now().await;
                followed.lock().push(clock.now());
            }
        });
        pacer.advance(DAY).await.expect("it is paced");
        let seen = seen.lock().clone();
        assert_eq!(seen.len(), 48);
        for (number, time) in seen.iter().enumerate() {
            let hour = Duration::from_secs(3600 * (number as u64 / 2 + 1));
            assert_eq!(*time, at("2030-01-01T00:00:00Z") + hour);
        }
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a client outside has a thread")]
fn sockets_are_served_while_time_stands_still_and_while_it_passes() {
    paced("speed=0", |_, pacer| async move {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let client = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let mut socket = std::net::TcpStream::connect(address).expect("a connection");
            let mut byte = [0];
            for number in 0..100 {
                socket.write_all(&[number]).expect("sent");
                socket.read_exact(&mut byte).expect("answered");
                assert_eq!(byte, [number]);
            }
        });
        let (mut socket, _) = listener.accept().await.expect("a client");
        let mut byte = [0];
        for number in 0..100 {
            socket.read_exact(&mut byte).await.expect("a byte");
            if number % 10 == 0 {
                pacer.advance(DAY).await.expect("it is paced");
            }
            socket.write_all(&byte).await.expect("sent");
        }
        client.join().expect("the client");
    });
}

#[test]
fn time_passes_at_its_speed() {
    paced("2030-01-01T00:00:00Z,speed=3600", |clock, _| async move {
        let began = machine_time();
        tokio::time::sleep(Duration::from_secs(360)).await;
        let passed = clock.now().duration_since(at("2030-01-01T00:00:00Z"));
        assert!(began.elapsed() >= Duration::from_millis(90), "{:?}", began.elapsed());
        assert!(passed >= jiff::SignedDuration::from_secs(360), "{passed}");
    });
}

#[test]
fn an_hour_that_is_passed_over_does_not_make_an_answer_from_outside_late() {
    paced("speed=0", |clock, pacer| async move {
        let (answer, answered) = oneshot::channel();
        let asking = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(1800)).await;
            outside(Duration::from_millis(30), answer);
            let before = clock.now();
            let answer = clock.wait_outside(Duration::from_secs(10), answered).await;
            (answer, clock.now().duration_since(before))
        });
        pacer.advance(Duration::from_secs(3600)).await.expect("it is paced");
        assert!(asking.is_finished(), "the hour is over when the answer has come");
        let (answer, waited) = asking.await.expect("it has asked");
        assert_eq!((answer, waited), (Ok(Ok("yes")), jiff::SignedDuration::ZERO));
    });
}

#[test]
fn at_its_end_time_passes_by_itself() {
    let runtime = Pacing::runtime().expect("a runtime");
    runtime.block_on(async {
        let (stop, stopped) = oneshot::channel::<()>();
        let (_, pacer) = pacing("speed=0").begin(async { drop(stopped.await) });
        drop(stop);
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(pacer.advance(DAY).await, Err(Ended));
    });
}
