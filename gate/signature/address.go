package signature

import (
	"net"
	"net/netip"
	"strings"
)

// clusterOnly says that a registry's address is one that only the cluster (or
// the machine itself) can be expected to reach.
func clusterOnly(registry string) bool {
	host := registry
	if h, _, err := net.SplitHostPort(registry); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(strings.TrimSuffix(host, "."), "[]"))
	if addr, err := netip.ParseAddr(host); err == nil {
		return privateAddr(addr)
	}
	if !strings.Contains(host, ".") {
		return true
	}
	for _, suffix := range []string{".svc", ".cluster.local", ".local", ".localhost", ".internal"} {
		if strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}

func privateAddr(addr netip.Addr) bool {
	addr = addr.Unmap()
	return addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast() || addr.IsUnspecified()
}
