// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package allow

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

type tag = tailnetv1alpha1.Tag

func granted(t *testing.T, g tailnetv1alpha1.NamespaceGrant) *Grant {
	t.Helper()
	g.Names = []string{"shop"}
	out, err := Of(&tailnetv1alpha1.AllowedNamespaces{From: tailnetv1alpha1.NamespacesFromGrants, Grants: []tailnetv1alpha1.NamespaceGrant{g}}, []tag{"tag:k8s"}, "shop", nil)
	if err != nil || out == nil {
		t.Fatalf("Of(...): %v, %v", out, err)
	}
	return out
}

// check checks that a violation names the field and the limit, and that there is none if both
// are empty.
func check(t *testing.T, reason string, got *ViolationError, field, limit string) {
	t.Helper()
	switch {
	case field == "" && got != nil:
		t.Errorf("\n%s\nwant no violation, got: %v", reason, got)
	case field != "" && got == nil:
		t.Errorf("\n%s\nwant a violation of %s", reason, field)
	case field != "" && (!strings.HasPrefix(got.Error(), field+": ") || !strings.Contains(got.Error(), limit)):
		t.Errorf("\n%s\nwant %s and %s, got: %v", reason, field, limit, got)
	}
}

func TestFirstGrantCounts(t *testing.T) {
	shop := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
	grants := []tailnetv1alpha1.NamespaceGrant{
		{Names: []string{"platform"}},
		{Names: []string{"both"}, Selector: shop, Tags: []tag{"tag:both"}},
		{Selector: shop, Tags: []tag{"tag:shop"}},
		{},
		{Names: []string{"blog", "shop"}, Tags: []tag{"tag:blog"}},
	}
	a := &tailnetv1alpha1.AllowedNamespaces{From: tailnetv1alpha1.NamespacesFromGrants, Grants: grants}
	labelled := map[string]string{"team": "shop"}
	cases := map[string]struct {
		reason    string
		namespace string
		labels    map[string]string
		none      bool
		limited   bool
		tag       tag
	}{
		"Whole":      {reason: "An entry without limits gives the whole credential.", namespace: "platform", tag: "tag:any"},
		"First":      {reason: "The first matching entry applies.", namespace: "shop", labels: labelled, limited: true, tag: "tag:shop"},
		"Later":      {reason: "Entries that do not match do not apply.", namespace: "shop", limited: true, tag: "tag:blog"},
		"Both":       {reason: "If names and a selector are set, both must match.", namespace: "both", labels: labelled, limited: true, tag: "tag:both"},
		"NotBoth":    {reason: "A match of one of both is not enough, and an empty entry matches none.", namespace: "both", none: true},
		"NoneBefore": {reason: "A namespace without an entry may not use the tailnet.", namespace: "other", none: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, err := Of(a, nil, tc.namespace, tc.labels)
			if err != nil || (g == nil) != tc.none {
				t.Fatalf("\n%s\nOf(...): %v, %v", tc.reason, g, err)
			}
			if ok, err := Namespace(a, tc.namespace, tc.labels); err != nil || ok == tc.none {
				t.Errorf("\n%s\nNamespace(...): %t, %v", tc.reason, ok, err)
			}
			if tc.none {
				return
			}
			if g.Limited() != tc.limited || Tags(g, "tags", []tag{tc.tag}) != nil {
				t.Errorf("\n%s\nwant tag %s of a grant that is limited: %t, got %v", tc.reason, tc.tag, tc.limited, g)
			}
		})
	}
	if !ByLabels(a) {
		t.Error("A selector of an entry needs labels")
	}
	a.Grants = []tailnetv1alpha1.NamespaceGrant{{Names: []string{"shop"}}, {Selector: &metav1.LabelSelector{}}}
	if ByLabels(a) {
		t.Error("A selector that matches all needs no labels")
	}
	a.Grants = []tailnetv1alpha1.NamespaceGrant{{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"-": "x"}}}, {Names: []string{"shop"}}}
	if g, err := Of(a, nil, "shop", nil); err == nil || g != nil {
		t.Errorf("An invalid selector allows none, got %v, %v", g, err)
	}
}

func TestManaged(t *testing.T) {
	shop := tailnetv1alpha1.NamespaceGrant{Tags: []tag{"tag:shop"}, Services: []tailnetv1alpha1.ServicePattern{"shop", "shop-*"}, Domains: []tailnetv1alpha1.GrantedDomain{"shop.example.com"}}
	shopGrant := func(kinds ...tailnetv1alpha1.ManagedKind) tailnetv1alpha1.NamespaceGrant {
		g := shop
		g.Kinds = kinds
		return g
	}
	machine := func(tags ...tag) resource.ModernManaged {
		return &tailnetv1alpha1.Machine{Spec: tailnetv1alpha1.MachineSpec{ForProvider: tailnetv1alpha1.MachineParameters{Tags: tags}}}
	}
	key := func(tags ...tag) resource.ModernManaged {
		return &tailnetv1alpha1.AuthKey{Spec: tailnetv1alpha1.AuthKeySpec{ForProvider: tailnetv1alpha1.AuthKeyParameters{Tags: tags}}}
	}
	device := func(tags ...tag) resource.ModernManaged {
		return &tailnetv1alpha1.Device{Spec: tailnetv1alpha1.DeviceSpec{ForProvider: tailnetv1alpha1.DeviceParameters{Tags: tags}}}
	}
	split := func(domains ...string) resource.ModernManaged {
		return &tailnetv1alpha1.SplitDNS{Spec: tailnetv1alpha1.SplitDNSSpec{ForProvider: tailnetv1alpha1.SplitDNSParameters{Domains: domains}}}
	}
	vip := func(name string, edit ...func(*tailnetv1alpha1.VIPServiceParameters)) resource.ModernManaged {
		v := &tailnetv1alpha1.VIPService{Spec: tailnetv1alpha1.VIPServiceSpec{ForProvider: tailnetv1alpha1.VIPServiceParameters{Name: tailnetv1alpha1.ServiceName(name)}}}
		for _, e := range edit {
			e(&v.Spec.ForProvider)
		}
		return v
	}
	dns := func(p tailnetv1alpha1.DNSParameters) resource.ModernManaged {
		return &tailnetv1alpha1.DNS{Spec: tailnetv1alpha1.DNSSpec{ForProvider: p}}
	}
	oauth := func(tags ...tag) resource.ModernManaged {
		return &tailnetv1alpha1.OAuthClient{Spec: tailnetv1alpha1.OAuthClientSpec{ForProvider: tailnetv1alpha1.OAuthClientParameters{Tags: tags}}}
	}
	const p = "spec.forProvider."
	cases := map[string]struct {
		reason string
		grant  tailnetv1alpha1.NamespaceGrant
		mg     resource.ModernManaged
		field  string
		limit  string
	}{
		"Whole":           {reason: "Without limits, all settings are allowed.", mg: vip("svc:any")},
		"WholePolicy":     {reason: "Without limits, all kinds are allowed.", mg: &tailnetv1alpha1.PolicyFragment{}},
		"Kind":            {reason: "A granted kind is allowed.", grant: shopGrant("Webhook"), mg: &tailnetv1alpha1.Webhook{}},
		"OtherKind":       {reason: "Another kind is not allowed.", grant: shopGrant("Webhook"), mg: machine(), field: "kind", limit: "grants[0].kinds"},
		"Tags":            {reason: "Machines can have granted tags and default tags.", grant: shop, mg: machine("tag:shop", "tag:k8s")},
		"TagBeyond":       {reason: "Machines cannot have other tags.", grant: shop, mg: machine("tag:shop", "tag:admin"), field: p + "tags[1]", limit: "grants[0].tags"},
		"KeyTag":          {reason: "Keys cannot have other tags.", grant: shop, mg: key("tag:admin"), field: p + "tags[0]", limit: "grants[0].tags"},
		"KeyCommon":       {reason: "A key has at least the default tags.", grant: shop, mg: key()},
		"DeviceTag":       {reason: "A device can have granted tags.", grant: shop, mg: device("tag:shop")},
		"DeviceCommon":    {reason: "A device with only default tags may belong to any namespace.", grant: shop, mg: device("tag:k8s"), field: p + "tags[0]", limit: "grants[0].tags"},
		"Service":         {reason: "A granted name is allowed.", grant: shop, mg: vip("svc:shop")},
		"ServicePattern":  {reason: "A name that matches a pattern is allowed.", grant: shop, mg: vip("svc:shop-web")},
		"ServiceBeyond":   {reason: "Another name is not allowed.", grant: shop, mg: vip("svc:shopping"), field: p + "name", limit: "grants[0].services"},
		"ServiceTag":      {reason: "A service can have only granted tags.", grant: shop, mg: vip("svc:shop", func(f *tailnetv1alpha1.VIPServiceParameters) { f.Tags = []tag{"tag:admin"} }), field: p + "tags[0]", limit: "grants[0].tags"},
		"RecordTag":       {reason: "The cluster's service can have only granted tags.", grant: shop, mg: vip("svc:shop", func(f *tailnetv1alpha1.VIPServiceParameters) { f.RecordTags = []tag{"tag:admin"} }), field: p + "recordTags[0]", limit: "grants[0].tags"},
		"HostTag":         {reason: "Approved machines can have only granted tags.", grant: shop, mg: vip("svc:shop", func(f *tailnetv1alpha1.VIPServiceParameters) { f.HostTags = []tag{"tag:admin"} }), field: p + "hostTags[0]", limit: "grants[0].tags"},
		"Domain":          {reason: "A granted domain and domains below it are allowed.", grant: shop, mg: split("shop.example.com", "A.Shop.Example.com.")},
		"DomainAbove":     {reason: "A domain above a granted one is not allowed.", grant: shop, mg: split("shop.example.com", "example.com"), field: p + "domains[1]", limit: "grants[0].domains"},
		"DomainBeside":    {reason: "A domain with the same suffix is not allowed.", grant: shop, mg: split("workshop.example.com"), field: p + "domains[0]", limit: "grants[0].domains"},
		"SingleLabel":     {reason: "A single label is refused even with the whole credential.", mg: split("com"), field: p + "domains[0]", limit: "single label"},
		"SingleLabelRoot": {reason: "A single label is refused in all notations.", mg: split("*.internal."), field: p + "domains[0]", limit: "single label"},
		"WideByDefault":   {reason: "Kinds that act on the whole tailnet are not allowed with limits.", grant: shop, mg: &tailnetv1alpha1.PolicyFragment{}, field: "kind", limit: "grants[0].kinds"},
		"WideOAuth":       {reason: "Kinds that create credentials are not allowed with limits.", grant: shop, mg: oauth("tag:shop"), field: "kind", limit: "grants[0].kinds"},
		"WideNamed":       {reason: "Kinds that act on the whole tailnet can be granted.", grant: shopGrant("PolicyFragment"), mg: &tailnetv1alpha1.PolicyFragment{}},
		"OAuthTag":        {reason: "Limits of tags apply to granted kinds.", grant: shopGrant("OAuthClient"), mg: oauth("tag:admin"), field: p + "tags[0]", limit: "grants[0].tags"},
		"DNSDomain":       {reason: "Limits of domains apply to granted kinds.", grant: shopGrant("DNS"), mg: dns(tailnetv1alpha1.DNSParameters{SplitDNS: []tailnetv1alpha1.SplitDNSDomain{{Domain: "example.com"}}}), field: p + "splitDNS[0].domain", limit: "grants[0].domains"},
		"DNSNameservers":  {reason: "A setting for all names exceeds every domain.", grant: shopGrant("DNS"), mg: dns(tailnetv1alpha1.DNSParameters{Nameservers: &tailnetv1alpha1.DNSNameservers{}}), field: p + "nameservers", limit: "grants[0].domains"},
		"DNSSearch":       {reason: "Other search paths are not allowed.", grant: shopGrant("DNS"), mg: dns(tailnetv1alpha1.DNSParameters{SearchPaths: ptr.To([]string{"example.com"})}), field: p + "searchPaths[0]", limit: "grants[0].domains"},
		"DNSGranted":      {reason: "Granted domains may be set.", grant: shopGrant("DNS"), mg: dns(tailnetv1alpha1.DNSParameters{SplitDNS: []tailnetv1alpha1.SplitDNSDomain{{Domain: "a.shop.example.com"}}})},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			check(t, tc.reason, granted(t, tc.grant).Managed(tc.mg), tc.field, tc.limit)
		})
	}
	bare := granted(t, shop)
	bare.common = nil
	check(t, "A key without any tag would be a person's.", bare.Managed(key()), p+"tags", "grants[0].tags")
	check(t, "A device without tags is a person's.", TagsOf(bare, "tags", []tag{}), "tags", "grants[0].tags")
	// Claims of an earlier grant are kept for cleaning up, and for nothing else.
	check(t, "Objects of an earlier grant can be cleaned up.", bare.Keeping(vip("svc:old")).Service("name", "svc:old"), "", "")
	check(t, "Another is not.", bare.Keeping(vip("svc:old")).Service("name", "svc:older"), "name", "services")
	check(t, "Nothing is left of a grant that is gone.", None(nil).Keeping(machine()).Service("name", "svc:shop"), "name", "services")
	check(t, "But what was granted.", Tags(None(nil).Keeping(machine("tag:shop")), "tags", []tag{"tag:shop"}), "", "")
}

func TestPods(t *testing.T) {
	images := func(repositories ...tailnetv1alpha1.ImageRepository) *Grant {
		return granted(t, tailnetv1alpha1.NamespaceGrant{Images: repositories})
	}
	digest := "@sha256:" + strings.Repeat("ab", 32)
	const ours = "mirror.example.com:5000/tailscale:v1.102.5"
	cases := map[string]struct {
		reason string
		grant  *Grant
		image  string
		beyond bool
	}{
		"None":           {reason: "Absent means the default image.", grant: images("registry.example.com/app")},
		"Default":        {reason: "The default is always allowed, at any tag.", grant: images("registry.example.com/app"), image: "mirror.example.com:5000/tailscale:v2"},
		"Short":          {reason: "Tailscale's repository has a short name.", grant: images(), image: "tailscale/tailscale"},
		"Hub":            {reason: "Tailscale's repository has a full name.", grant: images(), image: "docker.io/tailscale/tailscale:stable"},
		"GHCR":           {reason: "Tailscale also publishes at GitHub.", grant: images(), image: "ghcr.io/tailscale/tailscale:v1" + digest},
		"Digest":         {reason: "An image may have a digest.", grant: images(), image: "tailscale/tailscale" + digest},
		"Other":          {reason: "Another image could run anything.", grant: images(), image: "docker.io/library/busybox", beyond: true},
		"OtherPublisher": {reason: "The registry is part of the repository.", grant: images(), image: "example.com/tailscale/tailscale", beyond: true},
		"Longer":         {reason: "A repository below an allowed one is another.", grant: images(), image: "ghcr.io/tailscale/tailscale/evil", beyond: true},
		"Granted":        {reason: "A granted repository is allowed.", grant: images("registry.example.com/app"), image: "registry.example.com/app:v1"},
		"Replaces":       {reason: "Granted repositories replace Tailscale's.", grant: images("registry.example.com/app"), image: "tailscale/tailscale", beyond: true},
		"Below":          {reason: "Repositories below a granted path are allowed.", grant: images("registry.example.com/team/*"), image: "registry.example.com/team/x/tailscale:v1"},
		"NotBelow":       {reason: "A repository with the same prefix is not below a path.", grant: images("registry.example.com/team/*"), image: "registry.example.com/teams/x", beyond: true},
		"Registry":       {reason: "All repositories of a granted registry are allowed.", grant: images("registry.example.com:5000/*"), image: "registry.example.com:5000/app"},
		"NotRegistry":    {reason: "Another port is another registry.", grant: images("registry.example.com:5000/*"), image: "registry.example.com/app", beyond: true},
		"Hostile":        {reason: "Invalid image names are refused.", grant: images("registry.example.com/team/*"), image: "registry.example.com/team/../app", beyond: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			field, limit := "", ""
			if tc.beyond {
				field, limit = "spec.proxy.image", "grants[0].images"
			}
			check(t, tc.reason, tc.grant.image("spec.proxy.image", tc.image, ours), field, limit)
		})
	}
	whole := &Grant{}
	check(t, "Nobody runs any image unless it is granted.", whole.image("image", "busybox"), "image", "images of an entry of spec.allowedNamespaces.grants")
	check(t, "Networking is any by default.", whole.networking("networking", tailnetv1alpha1.NetworkingKernel), "", "")
	check(t, "It may be limited.", granted(t, tailnetv1alpha1.NamespaceGrant{Networking: []tailnetv1alpha1.Networking{"Userspace"}}).networking("networking", tailnetv1alpha1.NetworkingKernel), "networking", "grants[0].networking")
	check(t, "Nobody reads Secrets unless they are granted.", whole.envFromSecret("env"), "env", "envFromSecrets of an entry of spec.allowedNamespaces.grants")
	check(t, "An entry that does not name them does not grant them.", granted(t, tailnetv1alpha1.NamespaceGrant{}).envFromSecret("env"), "env", "grants[0].envFromSecrets")
	check(t, "They may be granted.", granted(t, tailnetv1alpha1.NamespaceGrant{EnvFromSecrets: ptr.To(true)}).envFromSecret("env"), "", "")
	privileged := &tailnetv1alpha1.KernelSettings{Privileged: ptr.To(true)}
	check(t, "Without settings nothing is privileged.", whole.privileged("kernel.privileged", nil), "", "")
	check(t, "Nobody has privileged containers unless they are granted.", whole.privileged("kernel.privileged", privileged), "kernel.privileged", "privilegedContainers of an entry of spec.allowedNamespaces.grants")
	check(t, "An entry that does not name them does not grant them.", granted(t, tailnetv1alpha1.NamespaceGrant{}).privileged("kernel.privileged", privileged), "kernel.privileged", "grants[0].privilegedContainers")
	check(t, "They may be granted.", granted(t, tailnetv1alpha1.NamespaceGrant{PrivilegedContainers: ptr.To(true)}).privileged("kernel.privileged", privileged), "", "")
	check(t, "They are settings of pods.", whole.Pods("spec.proxy", tailnetv1alpha1.PodSettings{Kernel: privileged}), "spec.proxy.kernel.privileged", "privilegedContainers of an entry of spec.allowedNamespaces.grants")
	check(t, "They may be withheld.", granted(t, tailnetv1alpha1.NamespaceGrant{EnvFromSecrets: ptr.To(false)}).envFromSecret("env"), "env", "grants[0].envFromSecrets")
	check(t, "A port on nodes is nobody's unless it is granted.", whole.staticEndpoints("static"), "static", "staticEndpoints of an entry of spec.allowedNamespaces.grants")
	check(t, "An entry that does not name it does not grant it.", granted(t, tailnetv1alpha1.NamespaceGrant{}).staticEndpoints("static"), "static", "grants[0].staticEndpoints")
	check(t, "It may be granted.", granted(t, tailnetv1alpha1.NamespaceGrant{StaticEndpoints: ptr.To(true)}).staticEndpoints("static"), "", "")
}

func TestExtensionImage(t *testing.T) {
	images := func(repositories ...tailnetv1alpha1.ImageRepository) *Grant {
		return granted(t, tailnetv1alpha1.NamespaceGrant{Images: []tailnetv1alpha1.ImageRepository{"proxies.example.com/*"}, ExtensionImages: repositories})
	}
	cases := map[string]struct {
		reason string
		grant  *Grant
		image  string
		limit  string
	}{
		"Granted":  {reason: "A granted repository is allowed, at any tag.", grant: images("mirror.example.com/extension"), image: "mirror.example.com/extension:v1"},
		"Below":    {reason: "Repositories below a granted path are allowed.", grant: images("mirror.example.com/*"), image: "mirror.example.com/a/extension:v1"},
		"Whole":    {reason: "The whole credential includes no images.", grant: &Grant{}, image: "mirror.example.com/extension", limit: "extensionImages of an entry of spec.allowedNamespaces.grants"},
		"Absent":   {reason: "An entry that does not name a repository grants none.", grant: images(), image: "mirror.example.com/extension", limit: "grants[0].extensionImages"},
		"Proxies":  {reason: "Images of proxies are not those of extensions, which have other permissions.", grant: images(), image: "proxies.example.com/extension", limit: "grants[0].extensionImages"},
		"Official": {reason: "Nor are Tailscale's.", grant: images(), image: "tailscale/tailscale", limit: "grants[0].extensionImages"},
		"Hostile":  {reason: "Invalid image names are refused.", grant: images("mirror.example.com/team/*"), image: "mirror.example.com/team/../app", limit: "grants[0].extensionImages"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			field := ""
			if tc.limit != "" {
				field = "spec.extensionServer.image"
			}
			check(t, tc.reason, tc.grant.ExtensionImage("spec.extensionServer.image", tc.image), field, tc.limit)
		})
	}
}

func TestResolves(t *testing.T) {
	newGrant := func(common []tailnetv1alpha1.GrantedDomain, g *tailnetv1alpha1.NamespaceGrant) *Grant {
		t.Helper()
		a := &tailnetv1alpha1.AllowedNamespaces{Domains: common}
		if g != nil {
			g.Names = []string{"shop"}
			a.From, a.Grants = tailnetv1alpha1.NamespacesFromGrants, []tailnetv1alpha1.NamespaceGrant{*g}
		}
		out, err := Of(a, nil, "shop", nil)
		if err != nil || out == nil {
			t.Fatalf("Of(...): %v, %v", out, err)
		}
		return out
	}
	type domains = []tailnetv1alpha1.GrantedDomain
	cases := map[string]struct {
		reason string
		grant  *Grant
		domain string
		limit  string
	}{
		"None":     {reason: "Without a list nothing resolves.", grant: &Grant{}, domain: "github.com", limit: "spec.allowedNamespaces.domains"},
		"Whole":    {reason: "The whole credential includes no domains.", grant: newGrant(nil, nil), domain: "github.com", limit: "spec.allowedNamespaces.domains"},
		"Entry":    {reason: "Nor does an entry without domains.", grant: newGrant(nil, &tailnetv1alpha1.NamespaceGrant{}), domain: "github.com", limit: "spec.allowedNamespaces.domains"},
		"Listed":   {reason: "A listed domain resolves.", grant: newGrant(domains{"example.com"}, nil), domain: "example.com"},
		"Below":    {reason: "So do names below it.", grant: newGrant(domains{"example.com"}, nil), domain: "*.shop.Example.com"},
		"Suffix":   {reason: "A name with the same end is another domain.", grant: newGrant(domains{"example.com"}, nil), domain: "badexample.com", limit: "spec.allowedNamespaces.domains"},
		"Common":   {reason: "An entry without domains has those of all namespaces.", grant: newGrant(domains{"example.com"}, &tailnetv1alpha1.NamespaceGrant{}), domain: "a.example.com"},
		"Own":      {reason: "An entry may have its own domains.", grant: newGrant(domains{"example.com"}, &tailnetv1alpha1.NamespaceGrant{Domains: domains{"shop.test"}}), domain: "a.shop.test"},
		"Replaced": {reason: "They replace those of all namespaces.", grant: newGrant(domains{"example.com"}, &tailnetv1alpha1.NamespaceGrant{Domains: domains{"shop.test"}}), domain: "example.com", limit: "grants[0].domains"},
		"Single":   {reason: "A single label is never allowed.", grant: newGrant(domains{"example.com"}, nil), domain: "com", limit: "single label"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			field := ""
			if tc.limit != "" {
				field = "hostname"
			}
			check(t, tc.reason, tc.grant.Resolves("hostname", tc.domain), field, tc.limit)
		})
	}
}

func TestClaims(t *testing.T) {
	d := &tailnetv1alpha1.Device{Spec: tailnetv1alpha1.DeviceSpec{ForProvider: tailnetv1alpha1.DeviceParameters{NodeID: "n1"}}}
	previous := Claims(d)
	d.Spec.ForProvider.Authorized = ptr.To(true)
	if Claims(d) != previous {
		t.Error("Settings without limits are not part of claims")
	}
	xpmeta.SetExternalName(d, "n2")
	if Claims(d) == previous {
		t.Error("Another device is another claim")
	}
	v := &tailnetv1alpha1.VIPService{}
	previous = Claims(v)
	v.Spec.ForProvider.Name = "svc:other"
	if Claims(v) == previous {
		t.Error("Another service is another claim")
	}
}
