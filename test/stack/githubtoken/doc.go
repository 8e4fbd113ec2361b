// Package githubtoken imitates, in the test's own process and on the loopback
// interface, the services that issue the identity tokens which Fulcio accepts:
// GitHub's, which gives a token to a workflow's job, and one that knows people
// by their e-mail address.
//
// The issuers have their public names. A program reaches them through the
// endpoint's proxy (HTTPS_PROXY) and trusts them by its authority
// (SSL_CERT_FILE); so the certificates that Fulcio issues name GitHub's real
// issuer. Nothing leaves the machine: the proxy knows no other host.
package githubtoken
