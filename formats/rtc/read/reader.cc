#include "formats/rtc/read/reader.h"

#include "formats/rtc/read/reader_impl.h"

namespace collect::rtc {

std::string_view to_text(CrcState state) {
  switch (state) {
    case CrcState::kNone:
      return "none";
    case CrcState::kIeee:
      return "ieee";
    case CrcState::kPublished:
      return "writer";
    case CrcState::kMismatch:
      return "mismatch";
    case CrcState::kUnchecked:
      return "unchecked";
  }
  return "unknown";
}

Bytes Object::payload() const {
  if (fragments_.empty()) return {};
  if (fragments_.size() == 1) return fragments_.front();
  gathered_->clear();
  gathered_->reserve(size);
  for (const Bytes part : fragments_) {
    gathered_->insert(gathered_->end(), part.begin(), part.end());
  }
  return *gathered_;
}

Reader::Reader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

Result<Reader> Reader::open(Bytes file, const ReaderOptions& options) {
  auto impl = std::make_unique<Impl>(file, options);
  COLLECT_TRY(impl->open());
  return Reader(std::move(impl));
}

bool Reader::next(Object& object) {
  return impl_->next(object);
}

bool Reader::next_frame(Frame& frame) {
  impl_->held_.reset();
  Object object;
  return impl_->step(frame, object) != Impl::Step::kEnd;
}

uint64_t Reader::offset() const {
  return impl_->held_ ? impl_->held_->offset : impl_->pos_;
}
const Geometry& Reader::geometry() const {
  return impl_->geometry_;
}
SpecialFrames Reader::special() const {
  return impl_->special_;
}
Endian Reader::endian() const {
  return impl_->endian_;
}
const UnitInfo& Reader::unit() const {
  return impl_->unit_;
}
const StreamInfo* Reader::stream(uint64_t id) const {
  const StreamState* stream = impl_->table_.find(id);
  return stream == nullptr ? nullptr : &stream->info;
}
std::vector<const StreamInfo*> Reader::streams() const {
  return impl_->table_.list();
}
uint64_t Reader::streams_version() const {
  return impl_->table_.version();
}

std::optional<int64_t> Reader::clock_ns(std::string_view name) const {
  const ClockState* clock = impl_->table_.clock(name);
  return clock == nullptr ? std::nullopt : clock->ns;
}

bool Reader::clock_has_epoch(std::string_view name) const {
  return has_epoch(impl_->table_.clock(name));
}

uint64_t Reader::head_bytes() const {
  return impl_->head_;
}
uint64_t Reader::tail_bytes() const {
  return impl_->tail_;
}
uint64_t Reader::frames() const {
  return impl_->frames_;
}
uint64_t Reader::unit_count() const {
  return impl_->unit_count();
}

Result<uint64_t> Reader::seek_unit(uint64_t k) {
  return impl_->seek_unit(k);
}
Result<uint64_t> Reader::seek_offset(uint64_t offset) {
  return impl_->seek_offset(offset);
}
Result<uint64_t> Reader::seek_time(int64_t time_ns, std::string_view clock) {
  return impl_->seek_time(time_ns, clock);
}

Result<Value> Reader::value(const Object& object) const {
  return decode_value(*object.stream, object.payload(), impl_->endian_);
}

Result<Annotation> Reader::annotation(const Object& object) const {
  const StreamInfo& stream = *object.stream;
  if (stream.format.kind != FormatKind::kAnnotation) {
    return Error{Code::kInvalidArgument, stream.label() + " holds no annotations"};
  }
  const auto text = decode_annotation(object.payload(), impl_->endian_);
  if (!text) return text.error();
  const auto ns = ExactTime::of_timespec(text->time.seconds, text->time.nanoseconds).nanoseconds();
  if (!ns) return Error{Code::kDamaged, stream.label() + ": the time is out of range"};
  Annotation annotation;
  annotation.time_ns = *ns;
  annotation.format = stream.format.annotated();
  annotation.body = text->body;
  if (stream.stream.empty()) return annotation;
  for (const StreamInfo* about : impl_->table_.list()) {
    if (about->name == stream.stream) annotation.about = about;
  }
  if (annotation.about == nullptr) return annotation;
  const std::string& clock =
      annotation.about->is_clock ? annotation.about->name : annotation.about->clock;
  annotation.since_epoch = clock.empty() || clock_has_epoch(clock);
  return annotation;
}

const Findings& Reader::findings() const {
  return impl_->findings_;
}

}  // namespace collect::rtc
