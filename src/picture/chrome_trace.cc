#include "src/picture/chrome_trace.h"

#include "src/base/error.h"

namespace catenary::picture {
namespace {

constexpr int kUnit = 1000;   // microseconds
constexpr int kInside = 100;  // arrows are tied to the slices that they begin and end in

// What we write into strings are names of our own: nothing there needs more.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

class Trace {
 public:
  explicit Trace(const Timeline& timeline) : timeline_(timeline) {}

  std::string write() {
    name_threads();
    for (const Action& action : timeline_.actions) slice(action);
    for (std::size_t i = 0; i < timeline_.messages.size(); ++i) arrow(i);
    return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + events_ + "\n]}\n";
  }

 private:
  void add(const std::string& event) { events_ += (events_.empty() ? "" : ",\n") + event; }

  int thread_of(int lane, int rank) const { return lane * timeline_.scene.ranks + rank; }

  void name_threads() {
    const Scene& scene = timeline_.scene;
    const std::string process = format("%s, %d ranks", name_of(scene).c_str(), scene.ranks);
    add(R"({"ph":"M","pid":0,"name":"process_name","args":{"name":)" + quoted(process) + "}}");
    for (int lane = 0; lane < scene.lanes; ++lane) {
      for (int rank = 0; rank < scene.ranks; ++rank) {
        const std::string name =
            scene.lanes > 1 ? format("rank %d, lane %d", rank, lane) : format("rank %d", rank);
        const int thread = thread_of(lane, rank);
        add(format(R"({"ph":"M","pid":0,"tid":%d,"name":"thread_name","args":{"name":%s}})", thread,
                   quoted(name).c_str()));
        add(format(
            R"({"ph":"M","pid":0,"tid":%d,"name":"thread_sort_index","args":{"sort_index":%d}})",
            thread, thread));
      }
    }
  }

  std::string name_of_slice(const Action& action) const {
    const bool takes = !action.arrivals.empty();
    const bool gives = action.departure.has_value();
    const bool reduces = action.steps > 1 || (takes && first_step(action).src);
    const char* verb = reduces && gives ? "reduce, send"
                       : reduces        ? "reduce"
                       : takes && gives ? "forward"
                       : takes          ? "receive"
                       : gives          ? "send"
                                        : "copy";
    return format("%s %d", verb, action.result.part);
  }

  const Step& first_step(const Action& action) const {
    return timeline_
        .schedules[static_cast<std::size_t>(action.lane)][static_cast<std::size_t>(action.rank)]
        .steps[action.first_step];
  }

  void slice(const Action& action) {
    std::string from;
    for (const std::size_t arrival : action.arrivals) {
      from += format(from.empty() ? "%d" : ",%d", timeline_.messages[arrival].from);
    }
    std::string to;
    if (action.departure) to = std::to_string(timeline_.messages[*action.departure].to);
    add(format(
        R"({"ph":"X","pid":0,"tid":%d,"ts":%d,"dur":%d,"name":%s,"args":{"step":%zu,"steps":%zu,)"
        R"("chunk":%d,"receives_from":[%s],"sends_to":[%s],"contributions":%s,"does":%s}})",
        thread_of(action.lane, action.rank), action.start * kUnit, kUnit,
        quoted(name_of_slice(action)).c_str(), action.first_step, action.steps, action.result.part,
        from.c_str(), to.c_str(), quoted(action.result.from.text()).c_str(),
        quoted(describe(timeline_, action)).c_str()));
  }

  void arrow(std::size_t index) {
    const Message& message = timeline_.messages[index];
    const int sent = (timeline_.actions[message.sender].start + 1) * kUnit - kInside;
    const int received = timeline_.actions[message.receiver].start * kUnit + kInside;
    const std::string same = format(R"("pid":0,"cat":"message","name":"message","id":%zu)", index);
    add(format(R"({"ph":"s","tid":%d,"ts":%d,%s})", thread_of(message.lane, message.from), sent,
               same.c_str()));
    add(format(R"({"ph":"f","bp":"e","tid":%d,"ts":%d,%s})", thread_of(message.lane, message.to),
               received, same.c_str()));
  }

  const Timeline& timeline_;
  std::string events_;
};

}  // namespace

std::string chrome_trace(const Timeline& timeline) { return Trace(timeline).write(); }

}  // namespace catenary::picture
