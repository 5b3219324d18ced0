//! Files that are not what was written.

use super::*;

/// A store with a checkpoint and a log, or with two logs, and the story that it holds.
fn stored(with_checkpoint: bool) -> (Sim, Vec<Step>) {
    let story = story(16);
    let sim = Sim::default();
    let mut store = open(&sim, LONG).expect("new");
    for (number, step) in story.iter().enumerate() {
        wait(take(&store, step)).expect("no conflict");
        if number == 9 {
            drop(store);
            rotate(&sim, with_checkpoint);
            store = open(&sim, LONG).expect("closed well");
        }
    }
    drop(store);
    (sim, story)
}

/// Ends the log of `sim`, as if a checkpoint had been begun, and finished or not.
fn rotate(sim: &Sim, with_checkpoint: bool) {
    let recovered = super::super::recover::recover(sim, LONG.limits, |_| {
        |_: &str, _: Revision, bytes: Vec<u8>| {
            let tag = tag(&bytes);
            Ok((bytes, tag))
        }
    });
    let state = recovered.expect("closed well").state;
    let before = super::super::files::Before::Ended;
    super::super::files::Log::create(sim, state.revision, before).expect("a new log");
    if with_checkpoint {
        super::super::checkpoint::write(sim, &state, &Default::default()).expect("written");
    }
}

/// `sim` with another content of one file.
fn changed(sim: &Sim, name: &str, bytes: Vec<u8>) -> Sim {
    let changed = sim.after(Left::Everything);
    changed.put(name, bytes);
    changed
}

#[test]
fn a_bit_that_was_flipped_anywhere_is_refused_with_the_name_of_the_file() {
    for with_checkpoint in [true, false] {
        let (sim, _) = stored(with_checkpoint);
        assert_eq!(names(&sim).len(), 2);
        for name in sim.names().expect("names") {
            let bytes = sim.get(&name);
            for bit in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                let found = changed(&sim, &name, flipped.clone());
                let refused = open(&found, LONG).expect_err("it is not what was written").to_string();
                assert!(refused.contains(&format!("/sim/{name} ")), "{name} bit {bit}: {refused}");
                assert_eq!(found.get(&name), flipped, "nothing was changed");
            }
        }
    }
}

#[test]
fn a_last_log_that_ends_early_is_repaired_and_every_other_file_is_refused() {
    for with_checkpoint in [true, false] {
        let (sim, story) = stored(with_checkpoint);
        // The machine has stopped before the mark got to the disk.
        sim.remove(MARK).expect("removed");
        let last = names(&sim).into_iter().rfind(|name| name.starts_with("log")).expect("a log");
        for name in names(&sim) {
            let bytes = sim.get(&name);
            let mut before = 0;
            for length in 0..bytes.len() {
                let found = changed(&sim, &name, bytes[..length].to_vec());
                match open(&found, LONG) {
                    Ok(store) => {
                        assert_eq!(name, last, "{length}");
                        assert!((10..16).contains(&store.revision().0) && store.revision().0 >= before);
                        before = store.revision().0;
                        check(&store, &story);
                        for step in &story[before as usize..] {
                            wait(take(&store, step)).expect("it goes on");
                        }
                        drop(store);
                        check(&open(&found, LONG).expect("repaired"), &story);
                    }
                    Err(error) => {
                        assert!(name != last || with_checkpoint, "{name} {length}: {error}");
                        assert!(matches!(error, OpenError::Damaged { .. }), "{name} {length}: {error}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_file_that_is_missing_is_named() {
    let (sim, _) = stored(true);
    for name in names(&sim) {
        let found = sim.after(Left::Everything);
        found.remove(&name).expect("removed");
        let refused = open(&found, LONG).expect_err("a file is missing");
        assert!(matches!(refused, OpenError::Missing { .. }), "{refused}");
        assert!(refused.to_string().starts_with("/sim/log-"), "{refused}");
    }
}

#[test]
fn files_of_others_are_refused() {
    let (sim, _) = stored(true);
    let foreign = changed(&sim, "notes.txt", b"hello".to_vec());
    let refused = open(&foreign, LONG).expect_err("not ours").to_string();
    assert_eq!(refused, "/sim/notes.txt is no file of a kubewright store");
    for name in names(&sim) {
        for bytes in [b"hello, this is some other file".to_vec(), vec![0; 4096], vec![0xff; 100]] {
            let refused = open(&changed(&sim, &name, bytes), LONG).expect_err("not ours").to_string();
            assert_eq!(refused, format!("/sim/{name} is no file of a kubewright store"));
        }
    }
    // A log under another log's name, and a checkpoint under a log's.
    let (log, checkpoint) = (&names(&sim)[1], &names(&sim)[0]);
    let renamed = changed(&sim, "log-00000000000000000016", sim.get(log));
    assert!(matches!(open(&renamed, LONG), Err(OpenError::Damaged { .. })));
    assert!(matches!(open(&changed(&sim, log, sim.get(checkpoint)), LONG), Err(OpenError::Foreign { .. })));
}

#[test]
fn a_file_of_another_version_is_refused_with_both_versions() {
    let mut bytes = b"kubewright log\n\0".to_vec();
    super::super::frame::write(&mut bytes, |out| {
        out.extend_from_slice(&2_u32.to_le_bytes());
        out.extend_from_slice(&[0; 40]);
    });
    let sim = Sim::default();
    sim.put("log-00000000000000000000", bytes);
    let refused = open(&sim, LONG).expect_err("from the future").to_string();
    assert_eq!(
        refused,
        "/sim/log-00000000000000000000 has format version 2, and this program knows version 1"
    );
}

#[test]
fn a_value_that_its_owner_cannot_read_is_named() {
    let (sim, _) = stored(true);
    let folder: Arc<dyn Folder> = Arc::new(sim);
    let refused = Disk::<Tag>::open_in(folder, LONG, |_| |_: &str, _: &[u8]| Err("no JSON".to_owned()));
    let refused = refused.expect_err("no value can be read").to_string();
    assert!(
        refused.starts_with("the value of key-") && refused.ends_with(" in things cannot be read: no JSON")
    );
}
