package replicated

import (
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/internal/dialect"
)

func TestPoolIsLastInFirstOut(t *testing.T) {
	p := pool{maxIdle: 3}
	a, b, c, d := new(physical), new(physical), new(physical), new(physical)
	start := time.Now()
	for _, x := range []*physical{a, b, c} {
		if !p.put(x, start) {
			t.Fatal("there is room, and it was refused")
		}
	}
	if p.put(d, start) {
		t.Error("it was taken beyond the limit")
	}
	for i, want := range []*physical{c, b, a, nil} {
		if got := p.get(dialect.Settings{}, nil); got != want {
			t.Errorf("get %d = %p, want %p", i, got, want)
		}
	}
}

func TestPoolPrefersTheBorrowersSettings(t *testing.T) {
	settings := func(zone string) dialect.Settings {
		s, err := dialect.For(dialectPostgres).ReadSettings(t.Context(), answering(zone), varTimeZone)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	berlin, tokyo := settings("Europe/Berlin"), settings("Asia/Tokyo")
	p := pool{maxIdle: 10}
	a, b, c := &physical{settings: berlin}, new(physical), &physical{settings: tokyo}
	for _, x := range []*physical{a, b, c} {
		p.put(x, time.Now())
	}
	if got := p.get(berlin, nil); got != a {
		t.Errorf("got the settings %q", got.settings.Signature())
	}
	if got := p.get(berlin, nil); got != c {
		t.Error("with none that fits, the youngest is taken")
	}
	if got := p.get(dialect.Settings{}, nil); got != b {
		t.Error("the last one is lost")
	}
}

func TestPoolShutTakesNothing(t *testing.T) {
	p := pool{maxIdle: 10}
	a := new(physical)
	p.put(a, time.Now())
	if out := p.shut(); len(out) != 1 || out[0] != a {
		t.Errorf("shut = %v, want what was idle", out)
	}
	if p.put(a, time.Now()) || p.len() != 0 {
		t.Error("a shut pool has taken one")
	}
	p.open()
	if !p.put(a, time.Now()) {
		t.Error("an opened pool has refused one")
	}
}

func TestPoolAges(t *testing.T) {
	start := time.Now()
	p := pool{maxIdle: 10, maxIdleTime: time.Minute}
	fresh, old := new(physical), &physical{expires: start.Add(10 * time.Second)}
	p.put(fresh, start)
	p.put(old, start)
	if out := p.aged(start.Add(5 * time.Second)); len(out) != 0 {
		t.Errorf("%d have aged after 5 s", len(out))
	}
	if out := p.aged(start.Add(11 * time.Second)); len(out) != 1 || out[0] != old {
		t.Errorf("after its time, aged = %v", out)
	}
	if out := p.aged(start.Add(61 * time.Second)); len(out) != 1 || out[0] != fresh {
		t.Errorf("idle for too long, aged = %v", out)
	}
	if p.len() != 0 {
		t.Errorf("%d are left", p.len())
	}
}
