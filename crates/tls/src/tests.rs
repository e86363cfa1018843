//! Files in every form that people have, and what is said of those that cannot serve.

use std::io;
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, KeyPair};
use rustls::{AlertDescription, CertificateError, InvalidMessage};
use tempfile::TempDir;

use super::*;

/// Made by openssl, for `localhost`.
const RSA: (&str, &str) = (
    include_str!("../fixtures/rsa-cert.pem"),
    include_str!("../fixtures/rsa-pkcs1.pem"),
);
const EC: (&str, &str) = (
    include_str!("../fixtures/ec-cert.pem"),
    include_str!("../fixtures/ec-sec1.pem"),
);
const ENCRYPTED: &str = include_str!("../fixtures/ec-encrypted.pem");

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn pair(&self, cert: &str, key: &str) -> PairFiles {
        PairFiles {
            cert: self.write("cert", cert),
            key: self.write("key", key),
        }
    }
}

/// A certificate and its key in PKCS#8.
fn fresh() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2030, 1, 1);
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

#[test]
fn a_pair_is_read_in_every_form_and_shown_as_it_is() {
    let folder = Folder::new();
    let (cert, key) = fresh();
    for (cert, key) in [(cert.as_str(), key.as_str()), RSA, EC] {
        let pair = folder.pair(cert, key).read().unwrap();
        assert!(pair.server().is_ok());
        let files = ClientFiles {
            ca: Some(folder.write("ca", cert)),
            pair: Some(folder.pair(cert, key)),
        };
        assert!(files.config().is_ok());
    }
    let pair = folder.pair(&cert, &key).read().unwrap();
    assert_eq!(pair.ends(), 1_893_456_000);
    assert!(pair.is_valid_at(1_893_456_000) && !pair.is_valid_at(1_893_456_001));
    assert!(!pair.is_valid_at(1_500_000_000));
    // A chain has more than one.
    let chain = format!("{cert}{}", RSA.0);
    let longer = folder.pair(&chain, &key).read().unwrap();
    assert!(longer != pair && longer.server().is_ok());
}

#[test]
fn a_file_that_cannot_serve_is_told_by_what_it_must_be_and_not_by_what_it_holds() {
    let folder = Folder::new();
    let (cert, key) = fresh();
    let (_, other) = fresh();
    let broken = cert.replace("MII", "!!!");
    for (cert, key, part, why) in [
        ("", key.as_str(), Part::Cert, PemError::NoCertificate),
        ("s3cret", &key, Part::Cert, PemError::NoCertificate),
        (&key, &key, Part::Cert, PemError::NoCertificate),
        (&broken, &key, Part::Cert, PemError::NoCertificate),
        (&cert, "s3cret", Part::Key, PemError::NoKey),
        (&cert, &cert, Part::Key, PemError::NoKey),
        (&cert, ENCRYPTED, Part::Key, PemError::NoKey),
        (&cert, &other, Part::Key, PemError::Mismatch),
        (&cert, RSA.1, Part::Key, PemError::Mismatch),
    ] {
        let files = folder.pair(cert, key);
        let fault = files.read().err().unwrap();
        assert_eq!((fault.part, &fault.why), (part, &why), "{cert} {key}");
        let text = fault.to_string();
        assert!(!text.contains("s3cret") && !text.contains("/tmp"), "{text}");
    }
    let files = PairFiles {
        cert: folder.write("cert", &cert),
        key: folder.0.path().join("absent"),
    };
    let fault = files.read().err().unwrap();
    assert_eq!(
        fault.to_string(),
        "key: the file cannot be read (entity not found)"
    );
    let large = folder.0.path().join("large");
    std::fs::File::create(&large)
        .unwrap()
        .set_len(2 << 20)
        .unwrap();
    for (ca, why) in [
        (large.as_path(), PemError::TooLarge),
        (
            Path::new("/dev/zero"),
            PemError::Unreadable(io::ErrorKind::InvalidInput),
        ),
        (&folder.write("key", &key), PemError::NoCertificate),
    ] {
        let fault = ClientFiles::trusting(Some(ca)).config().err().unwrap();
        assert_eq!((fault.part, fault.why), (Part::Ca, why));
    }
}

#[test]
fn a_key_that_others_may_read_is_seen() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let files = folder.pair(EC.0, EC.1);
    for (mode, open) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true)] {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&files.key, permissions).unwrap();
        assert_eq!(files.read().unwrap().is_open(), open, "{mode:o}");
    }
}

#[test]
fn a_machine_without_authorities_has_the_well_known_ones() {
    assert!(ClientFiles::default().config().is_ok());
}

#[test]
fn what_is_wrong_with_a_handshake_is_found_however_deep_it_lies() {
    let alert = rustls::Error::AlertReceived;
    let invalid = rustls::Error::InvalidCertificate;
    for (error, fault) in [
        (
            invalid(CertificateError::UnknownIssuer),
            HandshakeError::Untrusted,
        ),
        (
            invalid(CertificateError::NotValidForName),
            HandshakeError::OtherHost,
        ),
        (invalid(CertificateError::Expired), HandshakeError::NotNow),
        (invalid(CertificateError::Revoked), HandshakeError::Invalid),
        (
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType),
            HandshakeError::NoTls,
        ),
        (
            alert(AlertDescription::CertificateRequired),
            HandshakeError::Required,
        ),
        (alert(AlertDescription::UnknownCA), HandshakeError::Refused),
        (
            alert(AlertDescription::HandshakeFailure),
            HandshakeError::Other,
        ),
    ] {
        assert_eq!(HandshakeError::of(&error), Some(fault));
        let held = io::Error::other(Box::new(error));
        let deeper = io::Error::other(held);
        assert_eq!(HandshakeError::of(&deeper), Some(fault));
    }
    assert_eq!(HandshakeError::of(&io::Error::other("reset")), None);
}
