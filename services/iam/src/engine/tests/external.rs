//! Who comes in by an external issuer.

use super::*;

/// Somebody for whom an issuer answers.
fn answered_for(role: &str, home: &str) -> crate::external::External {
    crate::external::External {
        id: "of-the-issuer".into(),
        username: "oidc:1a2b3c4d:ada".into(),
        name: "Ada".into(),
        roles: [role.to_owned()].into(),
        home: home.into(),
        until: at("2026-08-01T12:10:00Z").timestamp(),
    }
}

fn login(
    world: &mut World,
    who: &crate::external::External,
) -> Result<(IamResponse, usize, bool), Error> {
    let ask = op("login");
    let call = Call {
        now: at("2026-08-01T12:00:00Z"),
        external: Some(who.clone()),
        ..world.call("q", &ask)
    };
    let effect = run(&world.directory, &call, &ask)?;
    for change in &effect.changes {
        world.directory.apply(change);
    }
    Ok((effect.answer, effect.changes.len(), effect.quiet))
}

#[test]
fn administrators_of_an_issuer_do_not_count_as_ones_who_stay_nor_as_ones_who_go() {
    let (mut world, local) = super::access::world();
    let boss = answered_for("admin", "acme");
    login(&mut world, &boss).unwrap();
    // Also with a key of their own.
    world.key(&boss.id, "").unwrap();
    for operation in ["disable-user", "delete-user"] {
        let refused = world.ask(&about(operation, &local)).unwrap_err();
        assert!(
            refused.message.contains("last active administrator"),
            "{refused}"
        );
    }
    let key = world.directory.keys_of(&local).next().unwrap().id.clone();
    let revoke = IamRequest {
        key_id: key,
        ..op("revoke-api-key")
    };
    world.ask(&revoke).unwrap_err();
    // The issuer says that they are none any more, and that is that; also where nobody of ours could come in.
    let mut ended = world.directory.user(&local).unwrap().clone();
    ended.enabled = false;
    world.directory.apply(&Change::PutUser(ended.clone()));
    assert!(login(&mut world, &answered_for("reader", "acme")).is_ok());
    let known = world.directory.user(&boss.id).unwrap();
    assert!(!known.roles.contains("admin"));
    login(&mut world, &boss).unwrap();
    ended.enabled = true;
    world.directory.apply(&Change::PutUser(ended));
    // Nor are they kept, or their home.
    world.workspace("disable-workspace", "acme").unwrap();
    world.workspace("enable-workspace", "acme").unwrap();
    world.ask(&about("disable-user", &boss.id)).unwrap();
    world.ask(&about("delete-user", &boss.id)).unwrap();
}

#[test]
fn who_comes_in_by_an_issuer_is_made_kept_to_it_and_can_be_kept_out() {
    let (mut world, _) = super::access::world();
    let reader = answered_for("reader", "default");
    let (answer, changes, quiet) = login(&mut world, &reader).unwrap();
    // No longer than what it was given for.
    assert!(answer.jwt_expires.starts_with("2026-08-01T12:10:00"));
    assert_eq!((changes, quiet), (1, true));
    assert_eq!(login(&mut world, &reader).unwrap().1, 0);
    let writer = answered_for("writer", "default");
    let (_, changes, quiet) = login(&mut world, &writer).unwrap();
    assert_eq!(
        (changes, quiet),
        (1, false),
        "others are told of other roles"
    );
    assert!(login(&mut world, &answered_for("reader", "nowhere")).is_err());

    let mut user = world.directory.user("of-the-issuer").unwrap().clone();
    assert!(user.roles.contains("writer") && user.password.is_none());
    user.enabled = false;
    world.directory.apply(&Change::PutUser(user));
    assert!(login(&mut world, &writer).is_err());
}
