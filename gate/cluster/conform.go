package cluster

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxShapeErrors bounds how many wrong fields one error names.
const maxShapeErrors = 8

// verifyPath is the one part of the object in which no field may go unread.
const verifyPath = "spec.verify"

// shape compares an untyped object with a Go type. Go's own decoders would not
// do: encoding/json matches names regardless of case and takes the last of two,
// and the unstructured converter drops what it does not know.
type shape struct {
	unknown []string
	errs    []error
}

func (s *shape) fail(path, expected string, found any) {
	if path == "" {
		path = "the object"
	}
	s.errs = append(s.errs, fmt.Errorf("%s: expected %s, found %s", path, expected, describe(found)))
}

// walk checks value against t. A null stands for an absent field, as in the
// Kubernetes API, except as an entry of a list.
func (s *shape) walk(path string, value any, t reflect.Type) {
	if value == nil || len(s.errs) >= maxShapeErrors {
		return
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[metav1.Time]():
		s.parsed(path, "a time such as 2006-01-02T15:04:05Z", value, func(text string) error {
			_, err := time.Parse(time.RFC3339, text)
			return err
		})
		return
	case reflect.TypeFor[metav1.Duration]():
		s.parsed(path, "a duration such as 10m", value, func(text string) error {
			_, err := time.ParseDuration(text)
			return err
		})
		return
	case reflect.TypeFor[metav1.FieldsV1]():
		if _, ok := value.(map[string]any); !ok {
			s.fail(path, "an object", value)
		}
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		s.walkStruct(path, value, t)
	case reflect.Slice:
		list, ok := value.([]any)
		if !ok {
			s.fail(path, "a list", value)
			return
		}
		for i, entry := range list {
			at := path + "[" + strconv.Itoa(i) + "]"
			if entry == nil {
				s.fail(at, "an entry", nil)
				continue
			}
			s.walk(at, entry, t.Elem())
		}
	case reflect.Map:
		object, ok := value.(map[string]any)
		if !ok {
			s.fail(path, "an object", value)
			return
		}
		for _, key := range sortedKeys(object) {
			s.walk(join(path, key), object[key], t.Elem())
		}
	case reflect.String:
		if _, ok := value.(string); !ok {
			s.fail(path, "a string", value)
		}
	case reflect.Bool:
		if _, ok := value.(bool); !ok {
			s.fail(path, "true or false", value)
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		if _, ok := value.(int64); !ok {
			s.fail(path, "an integer", value)
		}
	default:
		s.errs = append(s.errs, fmt.Errorf("%s: no rule for the type %s", path, t))
	}
}

func (s *shape) walkStruct(path string, value any, t reflect.Type) {
	object, ok := value.(map[string]any)
	if !ok {
		s.fail(path, "an object", value)
		return
	}
	fields := map[string]reflect.Type{}
	collectFields(t, fields)
	for _, key := range sortedKeys(object) {
		at := join(path, key)
		if field, ok := fields[key]; ok {
			s.walk(at, object[key], field)
			continue
		}
		if inVerify(path) {
			s.unknown = append(s.unknown, strings.TrimPrefix(strings.TrimPrefix(at, verifyPath), "."))
			continue
		}
		for name := range fields {
			if strings.EqualFold(name, key) {
				s.errs = append(s.errs, fmt.Errorf("%s: field names are case-sensitive, expected %q", at, name))
			}
		}
	}
}

func (s *shape) parsed(path, expected string, value any, parse func(string) error) {
	text, ok := value.(string)
	if !ok || parse(text) != nil {
		s.fail(path, expected, value)
	}
}

func (s *shape) err() error {
	if len(s.errs) > maxShapeErrors {
		s.errs = s.errs[:maxShapeErrors]
	}
	return errors.Join(s.errs...)
}

func inVerify(path string) bool {
	rest, ok := strings.CutPrefix(path, verifyPath)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// collectFields maps the JSON names of a struct's fields, inlined ones
// included, to their types.
func collectFields(t reflect.Type, fields map[string]reflect.Type) {
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() {
			continue
		}
		if name == "" && (field.Anonymous || strings.Contains(options, "inline")) {
			collectFields(field.Type, fields)
			continue
		}
		if name == "" {
			name = field.Name
		}
		fields[name] = field.Type
	}
}

// join appends a key to a dotted path, quoted where it could be mistaken.
func join(path, key string) string {
	if !plainKey(key) {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func plainKey(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

func sortedKeys(object map[string]any) []string {
	keys := make([]string, 0, len(object))
	for key := range object {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// describe names a value by its kind and, where that helps and is short, by
// itself.
func describe(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		if v == "" {
			return "an empty string"
		}
		return "the string " + strconv.Quote(clip(v))
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return "the number " + strconv.FormatInt(v, 10)
	case float64:
		return "the number " + strconv.FormatFloat(v, 'g', -1, 64)
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	default:
		return fmt.Sprintf("a value of the Go type %T", v)
	}
}

// maxQuoted bounds, in bytes, how much of a foreign text an error quotes.
const maxQuoted = 200

func clip(text string) string { return clipTo(text, maxQuoted) }

func clipTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
